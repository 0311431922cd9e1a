//go:build linux

package storefaults

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
)

// owner is an administrator of a PostgreSQL, whose connections nothing here ends.
type owner struct{ pool *pgxpool.Pool }

func (o owner) do(statements ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, sql := range statements {
			if _, err := o.pool.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	}
}

// each does something to all tables of runs but the mark, or to their schemas, by a
// statement with a %s.
func (o owner) each(list, statement string) func(context.Context) error {
	return func(ctx context.Context) error {
		rows, err := o.pool.Query(ctx, list)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err == nil && len(names) == 0 {
			err = errors.New("there is nothing to do it to")
		}
		for _, name := range names {
			if err == nil {
				_, err = o.pool.Exec(ctx, fmt.Sprintf(statement, name))
			}
		}
		return err
	}
}

// counters does something to the counters of a run, once there are some that a look has seen.
func (o owner) counters(statement string) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			var table string
			err := o.pool.QueryRow(ctx, tablesOfRuns+" AND tablename = 'quota_windows'").Scan(&table)
			if err == nil {
				var most int64
				err = o.pool.QueryRow(ctx, "SELECT coalesce(max(used_units), 0) FROM "+table+
					" WHERE subject NOT LIKE 'warm%'").Scan(&most)
				_ = (clock.Wall{}).Sleep(ctx, 5*monitor.Every)
				if err == nil && most >= 4 {
					_, err = o.pool.Exec(ctx, fmt.Sprintf(statement, table))
					return err
				}
			}
			if err != nil {
				return err
			}
		}
	}
}

const (
	schemasOfRuns = "SELECT quote_ident(nspname) FROM pg_namespace WHERE starts_with(nspname, 'quotabench_')"
	tablesOfRuns  = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE starts_with(schemaname, " +
		"'quotabench_')"
	tablesInUse = tablesOfRuns + " AND tablename <> 'quotabench_mark'"
)

func postgresVictim(t *testing.T) *victim {
	storetest.Postgres(t) // or skip
	// Nothing waits for a disk: servers end here, and no machine does.
	s, err := postgres.Open(t.Context(), "process",
		stores.Options{KeepLeftovers: true, Settings: map[string]string{"fsync": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	pool, err := s.Pool(t.Context(), postgres.PoolOptions{Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	admin := owner{pool}
	const user, password = "app", "planted"
	if err := admin.do("CREATE ROLE app LOGIN PASSWORD 'planted'", "GRANT CREATE ON DATABASE "+
		pool.Config().ConnConfig.Database+" TO app")(t.Context()); err != nil {
		t.Fatal(err)
	}
	const drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'"
	const dropStrategys = drop + " AND query NOT LIKE '%quotabench_mark%'"
	ready := settled(func(ctx context.Context) error {
		pool.Reset()
		return pool.Ping(ctx)
	})
	writable := settled(func(ctx context.Context) error {
		var off bool
		pool.Reset() // whose connections have it set
		err := pool.QueryRow(ctx, "SELECT current_setting('default_transaction_read_only') = 'off'").Scan(&off)
		if err == nil && !off {
			err = errors.New("it is read-only")
		}
		return err
	})
	at := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: s.Info().Addr,
		Path: pool.Config().ConnConfig.Database}
	return &victim{
		open: func(ctx context.Context) (stores.Store, error) {
			return stores.Opener(postgres.Open)(ctx, at.String(), stores.Options{KeepLeftovers: true})
		},
		left: func(ctx context.Context) ([]string, error) {
			rows, err := pool.Query(ctx, schemasOfRuns)
			if err != nil {
				return nil, err
			}
			return pgx.CollectRows(rows, pgx.RowTo[string])
		},
		acts: map[string]act{
			"schema dropped":               {inflict: admin.each(schemasOfRuns, "DROP SCHEMA %s CASCADE")},
			"tables dropped":               {inflict: admin.each(tablesInUse, "DROP TABLE %s CASCADE")},
			"tables emptied":               {inflict: admin.each(tablesInUse, "TRUNCATE %s CASCADE")},
			"rows removed from all tables": {inflict: admin.each(tablesOfRuns, "DELETE FROM %s")},
			"all counters set to 0":        {inflict: admin.counters("UPDATE %[1]s SET used_units = 0")},
			"all counters raised by 1":     {inflict: admin.counters("UPDATE %[1]s SET used_units = used_units + 1")},
			"all counters lowered by 1": {inflict: admin.counters("UPDATE %[1]s SET used_units = used_units - 1 " +
				"WHERE used_units > 0")},
			"one counter set to 2,000,000,000": {inflict: admin.counters("UPDATE %[1]s SET used_units = 2000000000 WHERE " +
				"subject = (SELECT subject FROM %[1]s WHERE subject NOT LIKE 'warm%%' ORDER BY used_units DESC LIMIT 1)")},
			"one row removed": {inflict: admin.counters("DELETE FROM %[1]s WHERE subject = (SELECT subject FROM %[1]s " +
				"WHERE subject NOT LIKE 'warm%%' ORDER BY used_units DESC LIMIT 1)")},
			"backends terminated": {inflict: admin.do(dropStrategys)},
			"read-only": {inflict: inTurn(admin.do("ALTER SYSTEM SET default_transaction_read_only = on",
				"SELECT pg_reload_conf()"),
				admin.do("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")), mend: writable},
			"rights taken away": {inflict: inTurn(admin.each(schemasOfRuns, "ALTER SCHEMA %s OWNER TO CURRENT_USER"),
				admin.each(schemasOfRuns, "ALTER SCHEMA %s OWNER TO app"))},
			"password rotated": {inflict: inTurn(admin.do("ALTER ROLE app PASSWORD 'another'", drop),
				admin.do("ALTER ROLE app PASSWORD 'planted'"))},
			"too few connections": {inflict: inTurn(admin.do("ALTER ROLE app CONNECTION LIMIT 1", drop),
				admin.do("ALTER ROLE app CONNECTION LIMIT -1"))},
			"stopped for a while": {inflict: suffers(s, "stopped", halted)},
			"killed":              killed(s, ready),
			"restarted with its data": {inflict: func(ctx context.Context) error {
				return errors.Join(suffers(s, "restarted", func(context.Context) time.Duration { return 0 })(ctx), ready(ctx))
			}},
		},
	}
}
