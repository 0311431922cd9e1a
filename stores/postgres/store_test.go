package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/stores/storetest"
)

func TestPostgresAsStore(t *testing.T) {
	eachPostgres(t, func(t *testing.T, p *postgres.Store) {
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
