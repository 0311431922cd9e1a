package redis

import (
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
)

// TestEmbeddedTellsTheTime: the embedded server's time of day goes on between two
// rounds of ageing, so that scripts which go by it see windows end when they do.
func TestEmbeddedTellsTheTime(t *testing.T) {
	s, err := openEmbedded("a test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := s.Client(ClientOptions{Pool: 1})
	t.Cleanup(func() { _ = c.Close() })
	last, err := c.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine may ask seldom. Time that goes on in rounds never takes a short step.
	shortest := time.Hour
	for from := clock.Nano(); clock.Nano()-from < int64(time.Minute) && shortest > ageEvery/10; {
		now, err := c.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if step := now.Sub(last); step > 0 {
			shortest = min(shortest, step)
			last = now
		}
	}
	if shortest > ageEvery/10 {
		t.Errorf("its time goes on by no less than %v", shortest)
	}
}

// TestEmbeddedKeysLiveTheirTime: a key lives exactly as long as it was told, whenever it
// was made between two rounds of ageing, and also if a script made it. The time is the
// test's own.
func TestEmbeddedKeysLiveTheirTime(t *testing.T) {
	var now atomic.Int64
	e, err := startEmbeddedAt(now.Load)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	c := goredis.NewClient(&goredis.Options{Addr: e.server.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	const life = 40 * time.Millisecond
	for i := range 12 {
		now.Add(int64(time.Duration(i) * 7 * time.Millisecond))
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
		now.Add(int64(life - time.Millisecond))
		if c.Exists(t.Context(), "k").Val() != 1 {
			t.Errorf("key %d of %v was gone after %v", i, life, life-time.Millisecond)
		}
		now.Add(int64(time.Millisecond))
		if c.Exists(t.Context(), "k").Val() != 0 {
			t.Errorf("key %d of %v was there after as much", i, life)
		}
	}
}
