// Package storetest gives tests their stores.
//
// A store that is missing on this machine skips the test with the reason, unless
// the environment variable QUOTABENCH_REQUIRE names it in its comma-separated
// list of redis and postgres: then the test fails.
//
// Servers are started once per test binary and shared. A package that uses one
// stops it with
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
package storetest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quotabench/quotabench/internal/stores"
)

var shared struct {
	mu       sync.Mutex
	redis    *stores.Redis
	redisErr error
	pg       *stores.Postgres
	pgErr    error
}

// Main runs the tests, stops what they started, and exits.
func Main(m *testing.M) {
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.redis != nil {
		code = exitCode(code, shared.redis.Close())
	}
	if shared.pg != nil {
		code = exitCode(code, shared.pg.Close())
	}
	os.Exit(code)
}

func exitCode(code int, err error) int {
	if err == nil {
		return code
	}
	fmt.Fprintln(os.Stderr, "storetest:", err)
	return max(code, 1)
}

// Redis returns the redis-server of this test binary. It is shared: keys must
// begin with a [Prefix].
func Redis(t testing.TB) *stores.Redis {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.redis == nil && shared.redisErr == nil {
		shared.redis, shared.redisErr = stores.OpenRedis(context.Background(), "process", stores.Options{})
	}
	missing(t, "redis", shared.redisErr)
	return shared.redis
}

// EmbeddedRedis returns a Redis in this process that the test has to itself.
func EmbeddedRedis(t testing.TB) *stores.Redis {
	t.Helper()
	r, err := stores.OpenRedis(context.Background(), "embedded", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// Postgres returns the PostgreSQL of this test binary. It is shared: tables
// belong into a [Schema].
func Postgres(t testing.TB) *stores.Postgres {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.pg == nil && shared.pgErr == nil {
		shared.pg, shared.pgErr = stores.OpenPostgres(context.Background(), "process", stores.Options{})
	}
	missing(t, "postgres", shared.pgErr)
	return shared.pg
}

var unique atomic.Int64

// Prefix returns a prefix for Redis keys that no other test has.
func Prefix(t testing.TB) string {
	return fmt.Sprintf("test:%d:%s:", unique.Add(1), strings.ToLower(t.Name()))
}

// Schema makes a PostgreSQL schema that no other test has and that goes with the
// test, and returns its name.
func Schema(t testing.TB, p *stores.Postgres) string {
	t.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), unique.Add(1))
	if err := p.CreateSchema(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.DropSchema(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return name
}

// Required reports whether QUOTABENCH_REQUIRE names the store.
func Required(store string) bool {
	return slices.ContainsFunc(strings.Split(os.Getenv("QUOTABENCH_REQUIRE"), ","), func(s string) bool {
		return strings.TrimSpace(s) == store
	})
}

func missing(t testing.TB, store string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case Required(store):
		t.Fatalf("QUOTABENCH_REQUIRE names %s: %v", store, err)
	default:
		t.Skipf("needs %s: %v", store, err)
	}
}
