package redis_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/stores/storetest"
)

func TestRedisAsStore(t *testing.T) {
	eachRedis(t, func(t *testing.T, r *redis.Store) {
		ctx, scope := t.Context(), storetest.Scope(t)
		set := func(c stores.Conn, key string) {
			t.Helper()
			if err := c.Client().(goredis.UniversalClient).Set(ctx, key, 1, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		var m stores.Meter
		c := connect(t, r, scope, stores.ConnOptions{Pool: 7, Meter: &m})
		if n := m.Connections.Load(); n != 7 {
			t.Errorf("%d connections are open, want 7", n)
		}
		if strays, err := r.Prepare(ctx, scope); strays != 0 || err != nil {
			t.Errorf("a fresh scope has %d strays (%v)", strays, err)
		}
		before, err := r.Count(ctx)
		if err != nil {
			t.Fatal(err)
		}
		set(c, scope.Prefix()+"k")
		set(c, "not"+scope.Prefix()+"k")
		if n := m.Connections.Load(); n != 7 {
			t.Errorf("%d connections were opened, want 7", n)
		}
		if strays, err := r.Prepare(ctx, scope); strays != 1 || err != nil {
			t.Errorf("%d strays (%v), want 1", strays, err)
		}
		u, err := r.Usage(ctx, scope)
		if (u.Bytes > 0) != (r.Info().Kind != stores.KindEmbedded) {
			t.Errorf("%d bytes of a %s", u.Bytes, r.Info().Kind)
		}
		if u.Bytes = 0; err != nil || u != (stores.Usage{Keys: 1, WithoutTTL: 1}) {
			t.Errorf("usage %+v (%v)", u, err)
		}
		if n, err := r.Count(ctx); err != nil || n.Keys != before.Keys+2 || n.WithoutTTL != before.WithoutTTL+2 {
			t.Errorf("%+v in all (%v), want two more keys without an end than %+v", n, err, before)
		}
		if err := r.Wipe(ctx, scope); err != nil {
			t.Fatal(err)
		}
		left, err := r.Admin().Exists(ctx, scope.Prefix()+"k", "not"+scope.Prefix()+"k").Result()
		if err != nil || left != 1 {
			t.Errorf("%d keys are left (%v), want that outside the scope", left, err)
		}
	})
}

func connect(t *testing.T, s stores.Store, scope stores.Scope, o stores.ConnOptions) stores.Conn {
	t.Helper()
	c, err := s.Connect(t.Context(), scope, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
