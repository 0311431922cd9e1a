package measure

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestFaultsOfStores: what others do to a store in mid-run is the store's fault. It is
// named, the run is invalid, and no strategy is said to have broken its word.
func TestFaultsOfStores(t *testing.T) {
	lookEvery, lookTimeout = 10*time.Millisecond, 150*time.Millisecond
	t.Cleanup(func() { lookEvery, lookTimeout = 100*time.Millisecond, 2*time.Second })
	redis, postgres, sql := storetest.Redis(t), storetest.Postgres(t), storetest.PostgresPool(t)
	command := func(args ...any) func(context.Context) error {
		return func(ctx context.Context) error { return redis.Admin().Do(ctx, args...).Err() }
	}
	for _, c := range []struct {
		name, strategy, code, says string
		fault                      func(context.Context) error
		mend                       func(context.Context) error
	}{
		{"FLUSHALL", "incr-expire", "store-lost-data", "redis lost what the run kept there, between 0.", command("FLUSHALL"), nil},
		{"memory is full", "incr-expire", "store-failed", "with the error OOM",
			command("CONFIG", "SET", "maxmemory", 1), command("CONFIG", "SET", "maxmemory", 0)},
		{"made a replica", "incr-expire", "store-failed", "with the error READONLY",
			command("REPLICAOF", "127.0.0.1", 1), command("REPLICAOF", "NO", "ONE")},
		{"stopped", "incr-expire", "store-failed", "redis did not answer from 0.",
			func(ctx context.Context) error {
				if err := syscall.Kill(redis.PID(), syscall.SIGSTOP); err != nil {
					return err
				}
				return (clock.Wall{}).Sleep(ctx, 2*lookTimeout)
			},
			func(context.Context) error { return syscall.Kill(redis.PID(), syscall.SIGCONT) }},
		{"rows removed", "pg-conditional", "store-lost-data", "postgres lost what the run kept there",
			func(ctx context.Context) error {
				var schema string
				const find = "SELECT schemaname FROM pg_tables WHERE tablename = 'quotabench_mark'"
				if err := sql.QueryRow(ctx, find).Scan(&schema); err != nil {
					return err
				}
				_, err := sql.Exec(ctx, "DROP TABLE "+schema+".quotabench_mark")
				return err
			}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			failed := make(chan error, 1)
			go func() {
				err := amid(t.Context(), c.strategy == "incr-expire", redis.Admin(), sql)
				if err == nil {
					err = c.fault(t.Context())
				}
				if c.mend != nil {
					_ = (clock.Wall{}).Sleep(t.Context(), 50*time.Millisecond)
					if e := c.mend(t.Context()); err == nil {
						err = e
					}
				}
				failed <- err
			}()
			r := measureReal(t, c.strategy, "link-hits", "steady", func(cfg *Config) {
				cfg.Stores = setOf(t, redis, postgres)
				cfg.Closed, cfg.Duration, cfg.Policy.Limit = true, 700*time.Millisecond, 30
			})[c.strategy]
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			if r.Audit.Valid {
				t.Errorf("the run is valid: %+v", r.Audit)
			}
			found := ""
			for _, x := range r.Audit.Reasons {
				if x.Code == c.code {
					found += x.Detail + "\n"
				}
			}
			if !strings.Contains(found, c.says) {
				t.Errorf("%s says %q, want %q; audit %+v", c.code, found, c.says, r.Audit)
			}
			for _, x := range r.Guarantee {
				if x.Verdict == results.Violated {
					t.Errorf("%s is blamed: %+v", c.strategy, x)
				}
			}
		})
	}
	if n, err := redis.Admin().DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("%d keys are left (%v)", n, err)
	}
}

// amid waits until a pass on Redis, or on PostgreSQL, has begun.
func amid(ctx context.Context, onRedis bool, redis *goredis.Client, sql *pgxpool.Pool) error {
	for {
		begun := false
		if onRedis {
			begun = len(redis.Keys(ctx, "*quotabench-mark").Val()) > 0
		} else if err := sql.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_tables WHERE tablename = 'quotabench_mark'").Scan(&begun); err != nil {
			return err
		}
		if err := (clock.Wall{}).Sleep(ctx, 30*time.Millisecond); err != nil || begun {
			return err
		}
	}
}

// TestNothingIsNoticed: on stores that nobody touches, nothing is.
func TestNothingIsNoticed(t *testing.T) {
	r := measureReal(t, "incr-expire", "link-hits", "steady", func(cfg *Config) {
		cfg.Stores, cfg.Closed = setOf(t, storetest.Redis(t)), true
	})["incr-expire"]
	if !r.Audit.Valid || hasReason(r, "store-failed") || hasReason(r, "store-lost-data") {
		t.Errorf("%+v", r.Audit)
	}
	if n := r.Cost.KeysWithoutTTL; n != 0 {
		t.Errorf("the mark is among the keys: %d of %d", n, r.Cost.KeysAtEnd)
	}
}
