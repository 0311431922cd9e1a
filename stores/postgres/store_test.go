package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
)

func TestPostgresAsStore(t *testing.T) {
	eachPostgres(t, func(t *testing.T, p *postgres.Store) {
		ctx := t.Context()
		scope := storetest.Scope(t)
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
		if err := pool.QueryRow(ctx, "SELECT schemaname FROM pg_tables WHERE tablename = 'here'").Scan(&schema); err != nil ||
			schema != scope.Schema() {
			t.Errorf("the table is in %q (%v), want %q", schema, err, scope.Schema())
		}
		if u, err := p.Usage(ctx, scope); err != nil || u != (stores.Usage{}) {
			t.Errorf("usage of an empty table: %+v (%v)", u, err)
		}
		const planted = 100 * 5_000 // bytes, stored as they are
		if _, err := pool.Exec(ctx, `CREATE TABLE "There" AS SELECT i, repeat('x', 5000)::text AS text FROM generate_series(1, 100) AS i;
			ALTER TABLE "There" ALTER text SET STORAGE EXTERNAL; UPDATE "There" SET text = text || 'y'`); err != nil {
			t.Fatal(err)
		}
		if u, err := p.Usage(ctx, scope); err != nil || u.Rows != 100 || u.Bytes < planted {
			t.Errorf("usage %+v (%v), want 100 rows and at least %d bytes", u, err, planted)
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

// TestColdPool: every statement and every transaction has a connection of its own.
func TestColdPool(t *testing.T) {
	s := storetest.Postgres(t)
	scope := storetest.Scope(t)
	if _, err := s.Prepare(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	for _, cold := range []bool{false, true} {
		var m stores.Meter
		conn, err := s.Connect(t.Context(), scope, stores.ConnOptions{Pool: 3, Cold: cold, Meter: &m})
		if err != nil {
			t.Fatal(err)
		}
		pool := conn.Client().(*pgxpool.Pool)
		before := m.Connections.Load()
		for range 4 {
			if _, err := pool.Exec(t.Context(), "SELECT 1"); err != nil {
				t.Fatal(err)
			}
		}
		err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "SELECT 1"); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), "SELECT 2")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		opened := m.Connections.Load() - before
		if want := map[bool]int64{false: 0, true: 5}[cold]; opened < want-1 || opened > want {
			t.Errorf("cold %v: %d connections were opened, want %d, or one less where the first is not closed yet", cold, opened,
				want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Wipe(t.Context(), scope); err != nil {
		t.Error(err)
	}
}
