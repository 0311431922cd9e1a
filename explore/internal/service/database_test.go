package service_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

func init() { maps.Copy(planteds, onSQL) }

// openSQL makes the tables of the planted services that use PostgreSQL.
func (p *planted) openSQL(url string) (err error) {
	ctx := context.Background()
	p.sql, err = pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	_, err = p.sql.Exec(ctx, `CREATE TABLE IF NOT EXISTS hits (id serial PRIMARY KEY, subject text);
		CREATE TABLE IF NOT EXISTS quotas (subject text PRIMARY KEY, used int NOT NULL);
		CREATE TABLE IF NOT EXISTS starts (id serial PRIMARY KEY);
		CREATE SCHEMA IF NOT EXISTS limits;
		CREATE TABLE IF NOT EXISTS limits.total AS SELECT 0 AS asked`)
	if err != nil {
		return err
	}
	return p.sql.QueryRow(ctx, "INSERT INTO starts DEFAULT VALUES RETURNING id").Scan(&p.started)
}

// hits counts the rows of a subject, and adds one if there is room.
func (p *planted) hits(ctx context.Context, on interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, key string) (bool, error) {
	var n int64
	err := on.QueryRow(ctx, "SELECT count(*) FROM hits WHERE subject = $1", key).Scan(&n)
	if err != nil || n >= p.limit {
		return false, err
	}
	var id int64
	err = on.QueryRow(ctx, "INSERT INTO hits (subject) VALUES ($1) RETURNING id", key).Scan(&id)
	return err == nil, err
}

// serializable counts the rows of a subject, and adds one if there is room. If PostgreSQL fails the transaction because
// of another one, the request is rejected, or admitted if the limiter fails open.
func (p *planted) serializable(ctx context.Context, key string, open bool) (ok bool, err error) {
	err = pgx.BeginTxFunc(ctx, p.sql, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) (err error) {
		ok, err = p.hits(ctx, tx, key)
		return err
	})
	if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == "40001" {
		return ok && open, nil
	}
	return ok && err == nil, err
}

// ensure has a subject have its row.
func (p *planted) ensure(ctx context.Context, key string) error {
	_, err := p.sql.Exec(ctx, "INSERT INTO quotas VALUES ($1, 0) ON CONFLICT DO NOTHING", key)
	return err
}

// onSQL are limiters on PostgreSQL.
var onSQL = map[string]func(ctx context.Context, p *planted, key string) (bool, error){
	"sql-count": func(ctx context.Context, p *planted, key string) (bool, error) { return p.hits(ctx, p.sql, key) },
	"sql-update": func(ctx context.Context, p *planted, key string) (bool, error) {
		if err := p.ensure(ctx, key); err != nil {
			return false, err
		}
		tag, err := p.sql.Exec(ctx, "UPDATE quotas SET used = used + 1 WHERE subject = $1 AND used < $2", key, p.limit)
		return tag.RowsAffected() == 1, err
	},
	"sql-row-lock": func(ctx context.Context, p *planted, key string) (ok bool, err error) {
		if err := p.ensure(ctx, key); err != nil {
			return false, err
		}
		err = pgx.BeginFunc(ctx, p.sql, func(tx pgx.Tx) error {
			var used int64
			err := tx.QueryRow(ctx, "SELECT used FROM quotas WHERE subject = $1 FOR UPDATE", key).Scan(&used)
			ok = used < p.limit
			if err != nil || !ok {
				return err
			}
			_, err = tx.Exec(ctx, "UPDATE quotas SET used = used + 1 WHERE subject = $1", key)
			return err
		})
		return ok && err == nil, err
	},
	// The lock is given up before the row can be seen by others.
	"sql-advisory": func(ctx context.Context, p *planted, key string) (ok bool, err error) {
		err = pgx.BeginFunc(ctx, p.sql, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", key); err != nil {
				return err
			}
			ok, err = p.hits(ctx, tx, key)
			_, uerr := tx.Exec(ctx, "SELECT pg_advisory_unlock(hashtext($1))", key)
			return errors.Join(err, uerr)
		})
		return ok && err == nil, err
	},
	"sql-advisory-xact": func(ctx context.Context, p *planted, key string) (ok bool, err error) {
		err = pgx.BeginFunc(ctx, p.sql, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext($1))", key); err != nil {
				return err
			}
			ok, err = p.hits(ctx, tx, key)
			return err
		})
		return ok && err == nil, err
	},
	// Two rows are locked in the order of the processes: the database ends a circle.
	"sql-circle": func(ctx context.Context, p *planted, key string) (ok bool, err error) {
		order := []string{"a", "b"}
		if p.started%2 == 0 {
			order = []string{"b", "a"}
		}
		err = pgx.BeginFunc(ctx, p.sql, func(tx pgx.Tx) error {
			for _, name := range order {
				if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext($1))", name); err != nil {
					return err
				}
			}
			ok, err = p.hits(ctx, tx, key)
			return err
		})
		return ok && err == nil, err
	},
	// PostgreSQL fails one of two transactions of which each has counted before the other added a row.
	"sql-serializable": func(ctx context.Context, p *planted, key string) (bool, error) {
		return p.serializable(ctx, key, false)
	},
	"sql-serializable-open": func(ctx context.Context, p *planted, key string) (bool, error) {
		return p.serializable(ctx, key, true)
	},
	// It admits nobody once it was asked often, which it counts in a schema that its statements name.
	"sql-schema": func(ctx context.Context, p *planted, key string) (bool, error) {
		var asked int64
		err := p.sql.QueryRow(ctx, "UPDATE limits.total SET asked = asked + 1 RETURNING asked").Scan(&asked)
		if err != nil || asked > 10 {
			return false, err
		}
		return planteds["sql-update"](ctx, p, key)
	},
	// The rows of the subjects that asked last are kept.
	"sql-forgets": func(ctx context.Context, p *planted, key string) (bool, error) {
		ok, err := p.hits(ctx, p.sql, key)
		if err == nil {
			_, err = p.sql.Exec(ctx, "DELETE FROM hits WHERE id <= (SELECT max(id) FROM hits) - $1", mostRemembered)
		}
		return ok, err
	},
	// It looks at Redis and writes to PostgreSQL.
	"sql-and-redis": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Get(ctx, key).Int64()
		if err != nil && !strings.Contains(err.Error(), "nil") || n >= p.limit {
			return false, nil
		}
		_, err = p.sql.Exec(ctx, "INSERT INTO hits (subject) VALUES ($1)", key)
		return err == nil, errors.Join(err, script.Run(ctx, p, []string{key}).Err())
	},
	"sql-copy": func(ctx context.Context, p *planted, key string) (bool, error) {
		_, err := p.sql.CopyFrom(ctx, pgx.Identifier{"hits"}, []string{"subject"}, pgx.CopyFromRows([][]any{{key}}))
		return err == nil, err
	},
	"sql-listen": func(ctx context.Context, p *planted, key string) (bool, error) {
		if _, err := p.sql.Exec(ctx, "LISTEN decided"); err != nil {
			return false, err
		}
		return planteds["sql-update"](ctx, p, key)
	},
	// Two statements without, and in, a transaction that locks.
	"sql-two": func(ctx context.Context, p *planted, key string) (bool, error) {
		for range 2 {
			if _, err := p.sql.Exec(ctx, "INSERT INTO hits (subject) VALUES ($1)", key); err != nil {
				return false, err
			}
		}
		return true, nil
	},
	"sql-two-locked": func(ctx context.Context, p *planted, key string) (bool, error) {
		err := pgx.BeginFunc(ctx, p.sql, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(1)")
			return err
		})
		return true, err
	},
}

// exploredSQL searches a planted service on Redis and PostgreSQL.
func exploredSQL(t *testing.T, kind string, cfg explore.Config) (*results.Search, error) {
	t.Helper()
	cfg.Postgres = storetest.Postgres(t)
	found, err := explored(t, kind, cfg)
	if found != nil && !found.ClockGoes {
		t.Error("the search does not say that no time can pass")
	}
	return found, err
}

// TestServicesOnPostgres: each race is found in its shortest schedule and repeated, and nothing in the right ones.
func TestServicesOnPostgres(t *testing.T) {
	testenv.Sequential(t)
	both := "A SELECT count(*) FROM hits WHERE subject = 's'; = 0; B SELECT count(*) FROM hits WHERE subject = 's'; = 0; "
	const add = "INSERT INTO hits (subject) VALUES ('s') RETURNING id;"
	for kind, want := range map[string]string{
		"sql-count":             "leak: " + both + "A " + add + " = 3 admitted; B " + add + " = 4 admitted",
		"sql-advisory":          "leak in 12 steps",
		"sql-and-redis":         "leak: A get s = nil; A INSERT INTO hits (subject) VALUES ('s'); = 1 row; B get s = nil; ",
		"sql-serializable-open": "leak",
		"sql-update":            "", "sql-row-lock": "", "sql-serializable": "", "sql-schema": "", "sql-advisory-xact": "", "sql-circle": "",
	} {
		t.Run(kind, func(t *testing.T) {
			if kind == "sql-circle" || kind == "sql-advisory" { // these have thousands of schedules
				testenv.Long(t)
			}
			found, err := exploredSQL(t, kind, explore.Config{Properties: []explore.Property{explore.Leak, explore.Stuck},
				Bounds: explore.Bounds{Preemptions: -1}})
			if err != nil {
				t.Fatal(err)
			}
			got := told(found)
			switch {
			case want == "leak in 12 steps" && len(found.Findings) == 1 && len(found.Findings[0].Steps) == 12:
			case !strings.HasPrefix(got, want), want == "" && (got != "" || found.Claim == "" || found.Capped != ""):
				t.Errorf("found %q, want %q (%s)", got, want, found.Claim)
			}
			for i := range found.Findings {
				replayed(t, kind, &found.Findings[i], explore.Target{Redis: redisOf(t), Postgres: storetest.Postgres(t)})
			}
		})
	}
}

// TestSchedulesOfStatements: two clients of two statements have as many schedules as two rows of two can be merged in.
// With a lock to the end of a transaction, one that wants it waits, and goes on in the step that gives it up.
func TestSchedulesOfStatements(t *testing.T) {
	testenv.Sequential(t)
	for kind, want := range map[string]int64{"sql-two": merged(2, 2), "sql-two-locked": locked([2]int{}, -1, -1)} {
		cfg := explore.Config{Limit: 2}
		cfg.Redis = redisOf(t)
		cfg.Postgres = storetest.Postgres(t)
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cfg.Service = "'" + program + "'"
		cfg.Environment = []string{plantedVariable + "=" + kind}
		census, err := explore.Enumerate(t.Context(), testkit.Strategy(t, "http"), cfg)
		if err != nil || census.Schedules != want {
			t.Errorf("%s: %+v, %v, want %d schedules", kind, census, err, want)
		}
	}
}

// merged is in how many orders rows of a and b can be merged.
func merged(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 1
	}
	return merged(a-1, b) + merged(a, b-1)
}

// locked counts the schedules of two clients that each begin, lock and commit: at is how many of these each has done,
// holder has the lock, and waiter waits for it; -1 is nobody.
func locked(at [2]int, holder, waiter int) (n int64) {
	if at == [2]int{3, 3} {
		return 1
	}
	for who := range at {
		next := at
		next[who]++
		switch {
		case who == waiter || at[who] == 3:
		case at[who] == 1 && holder >= 0: // it begins to wait
			n += locked(at, holder, who)
		case at[who] == 1:
			n += locked(next, who, -1)
		case at[who] == 2 && waiter >= 0: // whoever has waited has the lock now
			next[waiter]++
			n += locked(next, waiter, -1)
		case at[who] == 2:
			n += locked(next, -1, -1)
		default:
			n += locked(next, holder, waiter)
		}
	}
	return n
}

// TestFaultsOfPostgres: what a lost connection leaves undone, or done, is seen.
func TestFaultsOfPostgres(t *testing.T) {
	testenv.Sequential(t)
	for _, fault := range []quota.Fault{quota.FaultLostReply, quota.FaultOutage, quota.FaultCrash} {
		t.Run(string(fault), func(t *testing.T) {
			if fault == quota.FaultCrash { // processes start again and again
				testenv.Long(t)
			}
			found, err := exploredSQL(t, "sql-row-lock", explore.Config{Faults: []quota.Fault{fault}, Clients: 1,
				Properties: []explore.Property{explore.Leak, explore.Stuck}, Bounds: explore.Bounds{Preemptions: -1}})
			if err != nil || told(found) != "" || found.Capped != "" {
				t.Errorf("found %q, %v", told(found), err)
			}
		})
	}
}

// TestWhatPostgresPasses: what is no step ends the claim, with its name.
func TestWhatPostgresPasses(t *testing.T) {
	testenv.Sequential(t)
	for kind, name := range map[string]string{"sql-copy": "COPY", "sql-listen": "LISTEN"} {
		found, err := exploredSQL(t, kind, explore.Config{Limit: 2})
		if !errors.Is(err, explore.ErrUnseen) || !strings.Contains(fmt.Sprint(found.Withheld), name) {
			t.Errorf("%s: %+v, %v", kind, found, err)
		}
	}
}
