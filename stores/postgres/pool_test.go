package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
)

func TestFromPool(t *testing.T) {
	theirs := storetest.PostgresPool(t)
	ctx := t.Context()
	s, err := postgres.FromPool(ctx, theirs)
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Info(); i.Kind != stores.KindClient || i.Addr != storetest.Postgres(t).Info().Addr || i.Version == "" ||
		s.Owned() {
		t.Errorf("%+v, owned %v", i, s.Owned())
	}
	scope := storetest.Scope(t)
	if _, err := s.Prepare(ctx, scope); err != nil {
		t.Fatal(err)
	}
	var m stores.Meter
	c := connect(t, s, scope, stores.ConnOptions{Pool: 2, Meter: &m})
	sent := m.Snapshot()
	if _, err := c.Client().(*pgxpool.Pool).Exec(ctx, "CREATE TABLE here ()"); err != nil {
		t.Fatal(err)
	}
	if n := m.Snapshot().Sub(sent).Commands; n != 1 || m.Connections.Load() != 2 {
		t.Errorf("%d statements on %d connections metered, want 1 on 2", n, m.Connections.Load())
	}
	var schema string
	if err := theirs.QueryRow(ctx,
		"SELECT schemaname FROM pg_tables WHERE tablename = 'here'").Scan(&schema); err != nil || schema != scope.Schema() {
		t.Errorf("the table is in %q (%v)", schema, err)
	}
	if err := errors.Join(c.Close(), s.Wipe(ctx, scope), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Ping(ctx); err != nil {
		t.Errorf("closing the store closed the caller's pool: %v", err)
	}
}

// TestWipeAfterItsConnectionWasCut ends all idle connections of the store, as an
// administrator does.
func TestWipeAfterItsConnectionWasCut(t *testing.T) {
	ctx := t.Context()
	other := storetest.PostgresPool(t)
	scope := storetest.Scope(t)
	s, err := postgres.FromPool(ctx, freshPool(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prepare(ctx, scope); err != nil {
		t.Fatal(err)
	}
	var cut, left int
	if err := other.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE "+
		"application_name = 'to be cut'").Scan(&cut); err != nil || cut == 0 {
		t.Fatalf("%d connections were cut, %v", cut, err)
	}
	if err := s.Wipe(ctx, scope); err != nil {
		t.Error(err)
	}
	if err := other.QueryRow(ctx, "SELECT count(*) FROM pg_namespace WHERE nspname = $1",
		scope.Schema()).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}

// freshPool is a pool whose connections are known by their name.
func freshPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	cfg := storetest.PostgresPool(t).Config()
	cfg.ConnConfig.RuntimeParams["application_name"] = "to be cut"
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
