package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/storetest"
)

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
			t.Errorf("cold %v: %d connections were opened, want %d, or one less where the first is not closed yet", cold, opened, want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Wipe(t.Context(), scope); err != nil {
		t.Error(err)
	}
}
