package redis

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
)

// TestEmbeddedTellsTheTime: the embedded server's time of day goes on between two
// rounds of ageing, so that scripts which go by it see windows end when they do.
func TestEmbeddedTellsTheTime(t *testing.T) {
	s, err := openEmbedded("a test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := s.Client(ClientOptions{PoolSize: 1})
	t.Cleanup(func() { _ = c.Close() })
	last, err := c.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	shortest := time.Hour
	for from := clock.Nano(); clock.Nano()-from < int64(5*ageEvery) && shortest > ageEvery/10; {
		now, err := c.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if step := now.Sub(last); step > 0 {
			shortest, last = min(shortest, step), now
		}
	}
	if shortest > ageEvery/10 {
		t.Errorf("its time goes on by no less than %v", shortest)
	}
}

// TestEmbeddedKeysLiveTheirTime: a key does not age by what passed before it was made,
// whenever that is between two rounds of ageing, and also where a script made it. A slow
// machine sees it live longer.
func TestEmbeddedKeysLiveTheirTime(t *testing.T) {
	s, err := openEmbedded("a test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := s.Client(ClientOptions{PoolSize: 1})
	t.Cleanup(func() { _ = c.Close() })
	const life, slack = 40 * time.Millisecond, 4 * time.Millisecond
	for i := range 12 {
		if err := (clock.Wall{}).Sleep(t.Context(), time.Duration(i)*7*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		from := clock.Nano()
		set := func() error { return c.Set(t.Context(), "k", 1, life).Err() }
		if i%2 == 1 {
			set = func() error {
				return c.Eval(t.Context(), `return redis.call("SET", KEYS[1], 1, "PX", ARGV[1])`,
					[]string{"k"}, life.Milliseconds()).Err()
			}
		}
		if err := set(); err != nil {
			t.Fatal(err)
		}
		for c.Exists(t.Context(), "k").Val() == 1 {
			if clock.Nano()-from > int64(10*time.Second) {
				t.Fatal("it never expires")
			}
		}
		if lived := time.Duration(clock.Nano() - from); lived < life-slack {
			t.Errorf("key %d of %v was gone after %v", i, life, lived)
		}
	}
}
