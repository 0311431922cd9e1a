package postgres_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
)

func pool(t *testing.T, p *postgres.Store, o postgres.PoolOptions) *pgxpool.Pool {
	t.Helper()
	pl, err := p.Pool(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pl.Close)
	return pl
}

// eachPostgres runs f on every kind of server that can be had here.
func eachPostgres(t *testing.T, f func(t *testing.T, p *postgres.Store)) {
	t.Run("process", func(t *testing.T) { f(t, storetest.Postgres(t)) })
	t.Run("container", func(t *testing.T) { f(t, storetest.ContainerPostgres(t)) })
}

func TestMeterCountsStatementsExactly(t *testing.T) { eachPostgres(t, meterCountsStatementsExactly) }

func meterCountsStatementsExactly(t *testing.T, p *postgres.Store) {
	ctx := context.Background()
	var m stores.Meter
	pl := pool(t, p, postgres.PoolOptions{Schema: storetest.Schema(t, p), Size: 1, Meter: &m})
	exec := func(sql string, args ...any) error { _, err := pl.Exec(ctx, sql, args...); return err }
	const update = "UPDATE quota SET used = used + $1"
	inTx := func() error {
		return pgx.BeginFunc(ctx, pl, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, update, 1); return err })
	}
	batch := func() error {
		b := &pgx.Batch{}
		for range 5 {
			b.Queue(update, 1)
		}
		return pl.SendBatch(ctx, b).Close()
	}
	// Warm-up prepares what is measured.
	for _, err := range []error{exec("CREATE TABLE quota (used bigint)"), exec("INSERT INTO quota VALUES (0)"),
		exec(update, 1), inTx(), batch()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name                   string
		statements, roundTrips int64
		do                     func() error
	}{
		{"prepared", 1, 1, func() error { return exec(update, 1) }},
		{"simple protocol", 1, 1, func() error { return exec(update, pgx.QueryExecModeSimpleProtocol, 1) }},
		{"transaction", 3, 3, inTx}, // begin and commit are two
		{"batch", 5, 1, batch},
		{"not yet prepared", 1, 2, func() error { return exec("UPDATE quota SET used = used - $1", 1) }},
		{"statement that fails", 1, 1, func() error {
			if err := exec("SELECT 1/0", pgx.QueryExecModeSimpleProtocol); err == nil {
				return errors.New("did not fail")
			}
			return nil
		}},
	} {
		before := m.Snapshot()
		if err := tc.do(); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		got := m.Snapshot().Sub(before)
		if got.Commands != tc.statements || got.RoundTrips != tc.roundTrips {
			t.Errorf("%s: %d statements in %d round trips, want %d in %d", tc.name, got.Commands, got.RoundTrips, tc.statements,
				tc.roundTrips)
		}
	}
	if got := m.Snapshot(); got.Unparsed != 0 || got.Connections != 1 || got.SetupCommands == 0 {
		t.Errorf("%+v", got)
	}
}

func TestMeterCountsStatementsOfManyClients(t *testing.T) {
	p := storetest.Postgres(t)
	ctx := context.Background()
	var m stores.Meter
	pl := pool(t, p, postgres.PoolOptions{Schema: storetest.Schema(t, p), Size: 4, Meter: &m})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				var one int
				if err := pl.QueryRow(ctx, "SELECT $1::int", 1).Scan(&one); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	got := m.Snapshot()
	if got.Commands != 400 {
		t.Errorf("%d statements, want 400", got.Commands)
	}
	// Each connection prepares the statement once.
	if want := 400 + got.Connections; got.RoundTrips != want {
		t.Errorf("%d round trips over %d connections, want %d", got.RoundTrips, got.Connections, want)
	}
}

func TestSchemasKeepPoolsApart(t *testing.T) { eachPostgres(t, schemasKeepPoolsApart) }

func schemasKeepPoolsApart(t *testing.T, p *postgres.Store) {
	ctx := context.Background()
	for _, schema := range []string{storetest.Schema(t, p), storetest.Schema(t, p)} {
		pl := pool(t, p, postgres.PoolOptions{Schema: schema, Size: 2})
		if _, err := pl.Exec(ctx, "CREATE TABLE t (a int)"); err != nil {
			t.Fatal(err) // the second would find the first's table
		}
		var got string
		if err := pl.QueryRow(ctx, "SELECT table_schema FROM information_schema.tables WHERE table_name = 't' AND "+
			"table_schema = $1", schema).Scan(&got); err != nil {
			t.Errorf("the table is not in %s: %v", schema, err)
		}
	}
	if err := p.CreateSchema(ctx, `odd "name"; --`); err != nil {
		t.Fatal(err)
	}
	if err := p.CreateSchema(ctx, `odd "name"; --`); err == nil {
		t.Error("made a schema that exists")
	}
	pl := pool(t, p, postgres.PoolOptions{Schema: `odd "name"; --`, Size: 1})
	var path string
	if err := pl.QueryRow(ctx, "SELECT current_schema()").Scan(&path); err != nil || path != `odd "name"; --` {
		t.Errorf("search path %q (%v)", path, err)
	}
	for range 2 { // also when it is gone
		if err := p.DropSchema(ctx, `odd "name"; --`); err != nil {
			t.Error(err)
		}
	}
}

func TestPoolThatDoesNotFit(t *testing.T) {
	p := storetest.Postgres(t)
	pl, err := p.Pool(context.Background(), postgres.PoolOptions{Size: 1000})
	if err == nil {
		pl.Close()
		t.Fatal("opened")
	}
	storecheck.Error(t, err, "1000", "max_connections")
}

func TestPostgresProcessIsDescribed(t *testing.T) {
	p := storetest.Postgres(t)
	ctx := context.Background()
	i := p.Info()
	if i.Kind != stores.KindProcess || !p.Owned() || p.PID() <= 0 || !strings.HasPrefix(i.Addr, "127.0.0.1:") {
		t.Errorf("%+v, owned %v, pid %d", i, p.Owned(), p.PID())
	}
	if i.Version == "" || i.Durability != "fsync off, synchronous_commit on" {
		t.Errorf("version %q, durability %q", i.Version, i.Durability)
	}
	a, err := p.Stats(ctx)
	if !a.Known || err != nil {
		t.Fatal(a, err)
	}
	pl := pool(t, p, postgres.PoolOptions{Size: 1})
	if _, err := pl.Exec(ctx, "SELECT count(*) FROM generate_series(1, 1000000)"); err != nil {
		t.Fatal(err)
	}
	b, err := p.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if a.Incarnation == "" || a.Incarnation != b.Incarnation {
		t.Errorf("%+v, then %+v", a, b)
	}
	checkCPU(t, a, b)
}

func TestPostgresByURL(t *testing.T) {
	own := storetest.Postgres(t)
	ctx := context.Background()
	if _, err := pool(t, own, postgres.PoolOptions{Size: 1}).Exec(ctx,
		"CREATE ROLE guest LOGIN PASSWORD 's3cr3t'; GRANT CREATE ON DATABASE postgres TO guest"); err != nil {
		t.Fatal(err)
	}
	p, err := postgres.Open(ctx, "postgres://guest:s3cr3t@"+own.Info().Addr+"/postgres?sslmode=disable", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if i := p.Info(); i.Kind != stores.KindURL || p.Owned() || p.PID() != 0 || i.Version != own.Info().Version {
		t.Errorf("%+v, owned %v, pid %d", i, p.Owned(), p.PID())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := own.Stats(ctx); err != nil {
		t.Errorf("closing a server that is not ours ended it: %v", err)
	}
	for url, want := range map[string][]string{
		"postgres://nobody_of_that_name:s3cr3t@" + own.Info().Addr +
			"/postgres": {"refuses the login", "nobody_of_that_name", "PGPASSWORD"},
		"postgres://guest:s3cr3t@" + own.Info().Addr + "/no_such_db": {"refuses the connection", "no_such_db"},
	} {
		if p, err := postgres.Open(ctx, url, stores.Options{}); err == nil {
			_ = p.Close()
			t.Errorf("%s: opened", url)
		} else {
			storecheck.Error(t, err, want...)
		}
	}
}

func TestOpenPostgresErrors(t *testing.T) {
	for _, tc := range []struct {
		spec string
		want []string
	}{
		{"", []string{"--postgres is empty",
			"auto, process, process:connections=40, container, container:image=postgres:18, embedded", "postgres://"}},
		{"modell", []string{`"modell"`, "auto, process, process:connections=40, container, container:image=postgres:18, embedded", "postgres://"}},
		{"mysql://u:s3cr3t@h/", []string{"auto, process, process:connections=40, container, container:image=postgres:18, " +
			"embedded"}},
		{"postgres://u:s3cr3t@127.0.0.1:1/db",
			[]string{"127.0.0.1:1", "connection refused", "start one", "--postgres process", "--postgres embedded"}},
		{"postgres://u:s3cr3t/pw@127.0.0.1:1", []string{"not a valid URL", "%-encode"}},
		{"postgres://u:s3cr3t@127.0.0.1:1/db?sslmode=s3cr3t", []string{"not a valid URL"}},
	} {
		p, err := postgres.Open(context.Background(), tc.spec, stores.Options{})
		if err == nil {
			_ = p.Close()
			t.Errorf("%s: opened", tc.spec)
			continue
		}
		storecheck.Error(t, err, tc.want...)
	}
}

func TestNoServer(t *testing.T) {
	_, err := postgres.Open(t.Context(), "embedded", stores.Options{})
	var absent *stores.AbsentError
	if !errors.As(err, &absent) || absent.Reason.Kind != stores.KindModel || absent.Reason.Durability == "" {
		t.Fatalf("%#v", err)
	}
	storecheck.Error(t, err, "no server", "asked for", "in-process model")
}

// checkCPU demands that work done between two readings shows, if
// it can be seen at all.
func checkCPU(t *testing.T, a, b stores.Stats) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	if a.CPU <= 0 || b.CPU <= a.CPU {
		t.Errorf("CPU time %v, then %v after a heavy query", a.CPU, b.CPU)
	}
}
