package redis_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

func TestRedisAsStore(t *testing.T) {
	eachRedis(t, func(t *testing.T, r *redis.Store) {
		ctx := t.Context()
		scope := storetest.Scope(t)
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
		u.Bytes = 0
		if err != nil || u != (stores.Usage{Keys: 1, WithoutTTL: 1}) {
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

// TestColdClient: every command and every pipeline has a connection of its own, and
// what opening it takes is no command of the strategy's.
func TestColdClient(t *testing.T) {
	s := storetest.Redis(t)
	for _, cold := range []bool{false, true} {
		var m stores.Meter
		conn, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 3, Cold: cold, Meter: &m})
		if err != nil {
			t.Fatal(err)
		}
		c := conn.Client().(goredis.UniversalClient)
		before := m.Connections.Load()
		sent := m.Snapshot().Commands
		for range 4 {
			if err := c.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		_, err = c.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
			p.Ping(t.Context())
			return p.Ping(t.Context()).Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		opened := m.Connections.Load() - before
		commands := m.Snapshot().Commands - sent
		if want := map[bool]int64{false: 0, true: 5}[cold]; opened != want || commands != 6 {
			t.Errorf("cold %v: %d connections were opened and %d commands counted, want %d and 6", cold, opened, commands, want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestColdClientsOfSeveral: so it is with a cluster and with sentinels.
func TestColdClientsOfSeveral(t *testing.T) {
	testenv.Long(t)
	for _, spec := range []string{"process:cluster=3", "process:sentinel=3"} {
		s := started(t, spec)
		scope := storetest.Scope(t)
		for _, cold := range []bool{false, true} {
			var m stores.Meter
			conn, err := s.Connect(t.Context(), scope, stores.ConnOptions{Pool: 3, Cold: cold, Meter: &m})
			if err != nil {
				t.Fatal(err)
			}
			before := m.Connections.Load()
			for range 20 {
				if err := conn.Client().(goredis.UniversalClient).Incr(t.Context(), scope.Prefix()+"n").Err(); err != nil {
					t.Fatal(err)
				}
			}
			if opened := m.Connections.Load() - before; cold != (opened >= 20) {
				t.Errorf("%s, cold %v: 20 commands opened %d connections", spec, cold, opened)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
