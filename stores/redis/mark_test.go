package redis_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestMarkKeepsAnExpiryOfOthers: a look at the mark leaves the expiry that somebody has
// given to all keys, so that the mark goes when they go.
func TestMarkKeepsAnExpiryOfOthers(t *testing.T) {
	for name, s := range map[string]*redis.Store{"process": storetest.Redis(t), "embedded": storetest.EmbeddedRedis(t)} {
		ctx, scope := t.Context(), storetest.Scope(t)
		if err := s.Mark(ctx, scope); err != nil {
			t.Fatal(err)
		}
		c := s.Admin()
		keys, err := c.Keys(ctx, scope.Prefix()+"*").Result()
		if err != nil || len(keys) != 1 {
			t.Fatalf("%s: marks %q, %v", name, keys, err)
		}
		if err := c.PExpire(ctx, keys[0], time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if sign, err := s.Marked(ctx, scope); err != nil || !sign.There {
			t.Errorf("%s: the mark is there: %+v, %v", name, sign, err)
		}
		if ttl := c.PTTL(ctx, keys[0]).Val(); ttl <= 0 {
			t.Errorf("%s: the look took the expiry off: %v", name, ttl)
		}
		if err := c.Del(ctx, keys[0]).Err(); err != nil {
			t.Fatal(err)
		}
		if sign, err := s.Marked(ctx, scope); err != nil || sign.There {
			t.Errorf("%s: the mark is gone: %+v, %v", name, sign, err)
		}
	}
}
