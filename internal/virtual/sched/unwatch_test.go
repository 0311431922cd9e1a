package sched_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// A caller that is killed while its client cleans up gets to the end of that.
func TestKilledWhileCleaningUp(t *testing.T) {
	s := sched.New(sched.Config{Start: time.Unix(0, 0)})
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:0", MaxRetries: -1})
	rdb.AddHook(sched.Hook{})
	for _, command := range []string{"unwatch", "get"} {
		cleaned := false
		on := false
		a := s.Go("a", func(ctx context.Context) {
			err := rdb.Do(ctx, command, "k").Err()
			cleaned = err != nil
			for range 1000 {
				_ = rdb.Do(ctx, "incr", "k").Err()
			}
			on = true
		})
		s.Step(a)
		s.Kill(a)
		if cleaned != (command == "unwatch") || on {
			t.Errorf("%s: cleaned up %t, went on %t", command, cleaned, on)
		}
	}
	_ = rdb.Close()
}
