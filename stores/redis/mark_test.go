package redis_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// TestMarkKeepsAnExpiryOfOthers: a look at the mark leaves the expiry that somebody has
// given to all keys, so that the mark goes when they go.
func TestMarkKeepsAnExpiryOfOthers(t *testing.T) {
	for name, s := range map[string]*redis.Store{"process": storetest.Redis(t), "embedded": storetest.EmbeddedRedis(t)} {
		ctx := t.Context()
		scope := storetest.Scope(t)
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

// TestMarkByURLOfEmbedded: other processes that reach an embedded server by its URL see whether it is there and holds
// what was put there.
func TestMarkByURLOfEmbedded(t *testing.T) {
	own := storetest.EmbeddedRedis(t)
	r, err := redis.Open(t.Context(), own.URL(), stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	scope := storetest.Scope(t)
	if err := r.Mark(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		if sign, err := r.Marked(t.Context(), scope); err != nil || sign.There != there {
			t.Errorf("%+v, %v; should be there: %v", sign, err, there)
		}
		own.Admin().FlushAll(t.Context())
	}
}
