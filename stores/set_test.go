package stores_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/storetest"
)

// closable is a store that notes when it is closed.
type closable struct {
	stores.Store
	name   string
	closed *[]string
	err    error
}

func (c closable) Close() error {
	*c.closed = append(*c.closed, c.name)
	return c.err
}

func TestSetKeepsStoresByName(t *testing.T) {
	var closed []string
	broken := errors.New("broken")
	s := stores.NewSet()
	for _, c := range []closable{{name: "redis"}, {name: "redis.2", err: broken}, {name: "etcd"}} {
		c.closed = &closed
		if err := s.Add(c.name, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddAbsent("postgres", stores.Info{Kind: stores.KindModel}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "redis", "postgres"} {
		if s.Add(name, closable{}) == nil || s.AddAbsent(name, stores.Info{}) == nil {
			t.Errorf("a second store of the name %q was taken", name)
		}
	}
	if got, want := s.Names(), []string{"etcd", "redis", "redis.2"}; !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	if st, ok := s.Get("redis.2"); !ok || st.(closable).name != "redis.2" {
		t.Errorf("redis.2 is %v, %v", st, ok)
	}
	if _, ok := s.Get("postgres"); ok {
		t.Error("an absent store was found")
	}
	if why, ok := s.Absent("postgres"); !ok || why.Kind != stores.KindModel {
		t.Errorf("absent: %+v, %v", why, ok)
	}
	if _, ok := s.Absent("redis"); ok {
		t.Error("a store that is there is absent")
	}
	if err := s.Close(); !errors.Is(err, broken) {
		t.Errorf("Close: %v", err)
	}
	if want := []string{"etcd", "redis.2", "redis"}; !slices.Equal(closed, want) {
		t.Errorf("closed %v, want %v", closed, want)
	}
}

func TestNilSetIsEmpty(t *testing.T) {
	var s *stores.Set
	if _, ok := s.Get("redis"); ok || len(s.Names()) != 0 || s.Close() != nil {
		t.Error("a nil set holds something")
	}
	if _, ok := s.Absent("redis"); ok {
		t.Error("a nil set knows of an absence")
	}
	if s.Add("redis", closable{}) == nil {
		t.Error("a nil set took a store")
	}
}

func TestRedisAsStore(t *testing.T) {
	eachRedis(t, func(t *testing.T, r *stores.Redis) {
		ctx, scope := t.Context(), storetest.Scope(t)
		set := func(c stores.Conn, key string) {
			t.Helper()
			if err := c.Client().(redis.UniversalClient).Set(ctx, key, 1, 0).Err(); err != nil {
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
		set(c, scope.Prefix()+"k")
		set(c, "not"+scope.Prefix()+"k")
		if n := m.Connections.Load(); n != 7 {
			t.Errorf("%d connections were opened, want 7", n)
		}
		if strays, err := r.Prepare(ctx, scope); strays != 1 || err != nil {
			t.Errorf("%d strays (%v), want 1", strays, err)
		}
		if u, err := r.Usage(ctx, scope); err != nil || u != (stores.Usage{Keys: 1, WithoutTTL: 1}) {
			t.Errorf("usage %+v (%v)", u, err)
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

func TestPostgresAsStore(t *testing.T) {
	eachPostgres(t, func(t *testing.T, p *stores.Postgres) {
		ctx, scope := t.Context(), storetest.Scope(t)
		if _, err := p.Prepare(ctx, scope); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Wipe(context.Background(), scope) })
		if _, err := p.Prepare(ctx, scope); err == nil {
			t.Error("a scope was prepared that holds something already")
		}
		var m stores.Meter
		c := connect(t, p, scope, stores.ConnOptions{Pool: 5, Meter: &m})
		if n := m.Connections.Load(); n != 5 {
			t.Errorf("%d connections are open, want 5", n)
		}
		pool := c.Client().(*pgxpool.Pool)
		if _, err := pool.Exec(ctx, "CREATE TABLE here ()"); err != nil {
			t.Fatal(err)
		}
		var schema string
		if err := pool.QueryRow(ctx, "SELECT schemaname FROM pg_tables WHERE tablename = 'here'").Scan(&schema); err != nil || schema != scope.Schema() {
			t.Errorf("the table is in %q (%v), want %q", schema, err, scope.Schema())
		}
		if err := p.Wipe(ctx, scope); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Prepare(ctx, scope); err != nil {
			t.Errorf("after Wipe: %v", err)
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
