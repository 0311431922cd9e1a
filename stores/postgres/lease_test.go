package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
)

// theirs is a store on a server that outlives this process, as one of a user's does,
// and a pool on it.
func theirs(t *testing.T) (*postgres.Store, *pgxpool.Pool) {
	t.Helper()
	just := server.JustStarted
	server.JustStarted = 0
	t.Cleanup(func() { server.JustStarted = just })
	pl := pool(t, storetest.Postgres(t), postgres.PoolOptions{Size: 3})
	s, err := postgres.FromPool(t.Context(), pl)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, pl
}

func do(t *testing.T, p *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := p.Exec(context.Background(), fmt.Sprintf(sql, args...)); err != nil {
		t.Fatal(err)
	}
}

// plant makes a schema of another process, last renewed that many seconds ago.
func plant(t *testing.T, p *pgxpool.Pool, name string, change func(*server.Owner), ago int) {
	t.Helper()
	o := server.Us()
	o.Run = name
	change(&o)
	var now float64
	if err := p.QueryRow(t.Context(), "SELECT extract(epoch FROM clock_timestamp())::float8").Scan(&now); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"quotabench": o, "renewed": now - float64(ago)})
	if err != nil {
		t.Fatal(err)
	}
	do(t, p, "CREATE SCHEMA quotabench_%s", name)
	do(t, p, "CREATE TABLE quotabench_%s.t (n int)", name)
	do(t, p, "COMMENT ON SCHEMA quotabench_%s IS '%s'", name, text)
	t.Cleanup(func() { do(t, p, "DROP SCHEMA IF EXISTS quotabench_%s CASCADE", name) })
}

// schemas are those of runs, and "database" and its name for each database of one.
func schemas(t *testing.T, p *pgxpool.Pool) (names []string) {
	t.Helper()
	err := p.QueryRow(context.Background(), `SELECT coalesce(array_agg(name::text ORDER BY name DESC), '{}') FROM (
		SELECT nspname::text FROM pg_namespace WHERE starts_with(nspname, 'quotabench_') UNION
		SELECT 'database ' || datname FROM pg_database WHERE starts_with(datname, 'quotabench_')) AS made (name)`).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func died(o *server.Owner) { o.Process = "0" + o.Process }
func other(o *server.Owner) {
	o.Machine = "another boot"
	o.Host = "far"
}

// TestOnlyTheDeadAreDropped plants schemas of processes that live, that died, that are
// elsewhere, and that are unknown.
func TestOnlyTheDeadAreDropped(t *testing.T) {
	s, p := theirs(t)
	ctx := t.Context()
	if _, err := s.Prepare(ctx, "mine"); err != nil {
		t.Fatal(err)
	}
	plant(t, p, "dead", died, 0)
	plant(t, p, "far", other, int(server.LeaseLife.Seconds())+1)
	plant(t, p, "near", other, int(server.LeaseLife.Seconds())-30)
	for _, name := range []string{"dead", "mine"} {
		do(t, p, "CREATE DATABASE quotabench_%s", name)
		t.Cleanup(func() { do(t, p, "DROP DATABASE IF EXISTS quotabench_%s", name) })
	}
	do(t, p, "CREATE SCHEMA quotabench_old")
	t.Cleanup(func() { do(t, p, "DROP SCHEMA quotabench_old") })
	// A transaction that is prepared holds its locks without a connection.
	do(t, p, "BEGIN; INSERT INTO quotabench_dead.t VALUES (1); PREPARE TRANSACTION 'quotabench_dead 0/1 7'")

	found, err := s.Holdings(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range found {
		got = append(got, string(h.Scope)+" "+string(h.State))
	}
	if want := []string{"dead left", "far left", "mine in use", "near in use", "old unknown"}; !slices.Equal(got, want) {
		t.Errorf("holdings %q, want %q", got, want)
	}
	did, err := stores.RemoveDead(ctx, s)
	if err != nil || !strings.HasPrefix(did, "removed 2 schemas that 2 runs left") {
		t.Errorf("%q, %v", did, err)
	}
	if got, want := schemas(t, p),
		[]string{"quotabench_old", "quotabench_near", "quotabench_mine", "database quotabench_mine"}; !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	if err := s.Wipe(ctx, "mine"); err != nil {
		t.Error(err)
	}
	if got, want := schemas(t, p), []string{"quotabench_old", "quotabench_near"}; !slices.Equal(got, want) {
		t.Errorf("%q are left once mine is removed, want %q", got, want)
	}
}

// TestARenewedLeaseIsNotDiscarded: its owner lives after all.
func TestARenewedLeaseIsNotDiscarded(t *testing.T) {
	s, p := theirs(t)
	plant(t, p, "again", other, 1000)
	found, err := s.Holdings(t.Context(), false)
	if err != nil || len(found) != 1 || found[0].State != stores.HeldDead {
		t.Fatalf("%+v, %v", found, err)
	}
	do(t, p, "COMMENT ON SCHEMA quotabench_again IS '%s'", strings.Replace(found[0].Entry, `"renewed":`, `"renewed":9`, 1))
	if n, err := s.Discard(t.Context(), found[0]); n != 0 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	if got := schemas(t, p); len(got) != 1 {
		t.Errorf("%q are left", got)
	}
}

// TestADropThatFailedIsTriedAgain by the next Prepare, and by Close.
func TestADropThatFailedIsTriedAgain(t *testing.T) {
	for _, later := range []string{"Prepare", "Close"} {
		t.Run(later, func(t *testing.T) {
			s, p := theirs(t)
			ctx := t.Context()
			if _, err := s.Prepare(ctx, "owed1"); err != nil {
				t.Fatal(err)
			}
			over, cancel := context.WithCancel(ctx)
			cancel()
			if err := s.Wipe(over, "owed1"); err == nil {
				t.Fatal("Wipe has not failed")
			}
			var err error
			if later == "Close" {
				err = s.Close()
			} else if _, err = s.Prepare(ctx, "owed2"); err == nil {
				err = errors.Join(s.Wipe(ctx, "owed2"))
			}
			if err != nil {
				t.Error(err)
			}
			if left := schemas(t, p); len(left) > 0 {
				t.Errorf("%q are left", left)
			}
		})
	}
}

// TestRenewal writes the time anew.
func TestRenewal(t *testing.T) {
	s, p := theirs(t)
	if _, err := s.Prepare(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	comment := func() (text string) {
		if err := p.QueryRow(t.Context(),
			"SELECT obj_description('quotabench_mine'::regnamespace, 'pg_namespace')").Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := comment()
	s.Renew(t.Context())
	if after := comment(); after == before || !strings.Contains(after, server.Us().Run) {
		t.Errorf("from %s to %s", before, after)
	}
	if err := s.Wipe(t.Context(), "mine"); err != nil {
		t.Error(err)
	}
}
