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
