// Package storetest gives tests their stores.
//
// A store that is missing on this machine skips the test with the reason, unless
// the environment variable QUOTABENCH_REQUIRE names it in its comma-separated
// list of redis, postgres and container: then the test fails. Containers are of
// the images that QUOTABENCH_REDIS_IMAGE and QUOTABENCH_POSTGRES_IMAGE name, or of
// the default ones, and none is downloaded.
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

	"github.com/quotabench/quotabench/stores"
)

// server is one that all tests of a binary share.
type server[T interface{ Close() error }] struct {
	mu   sync.Mutex
	open func(context.Context) (T, error)
	done bool
	s    T
	err  error
}

func (s *server[T]) get(t testing.TB, need string) T {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.s, s.err = s.open(context.Background())
		s.done = true
	}
	missing(t, need, s.err)
	return s.s
}

func (s *server[T]) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done || s.err != nil {
		return nil
	}
	return s.s.Close()
}

func redis(spec, image string) *server[*stores.Redis] {
	return &server[*stores.Redis]{open: func(ctx context.Context) (*stores.Redis, error) {
		return stores.OpenRedis(ctx, spec, stores.Options{Image: os.Getenv(image), NoPull: true})
	}}
}

func postgres(spec, image string) *server[*stores.Postgres] {
	return &server[*stores.Postgres]{open: func(ctx context.Context) (*stores.Postgres, error) {
		return stores.OpenPostgres(ctx, spec, stores.Options{Image: os.Getenv(image), NoPull: true})
	}}
}

// Environment variables that name the images of containers.
const (
	RedisImageEnv    = "QUOTABENCH_REDIS_IMAGE"
	PostgresImageEnv = "QUOTABENCH_POSTGRES_IMAGE"
)

var (
	redisProcess      = redis("process", RedisImageEnv)
	redisContainer    = redis("container", RedisImageEnv)
	postgresProcess   = postgres("process", PostgresImageEnv)
	postgresContainer = postgres("container", PostgresImageEnv)
)

// Main runs the tests, stops what they started, and exits.
func Main(m *testing.M) {
	code := m.Run()
	for _, s := range []interface{ close() error }{redisProcess, redisContainer, postgresProcess, postgresContainer} {
		code = exitCode(code, s.close())
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
	return redisProcess.get(t, "redis")
}

// ContainerRedis is as [Redis], in a container.
func ContainerRedis(t testing.TB) *stores.Redis {
	t.Helper()
	return redisContainer.get(t, "container")
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
	return postgresProcess.get(t, "postgres")
}

// ContainerPostgres is as [Postgres], in a container.
func ContainerPostgres(t testing.TB) *stores.Postgres {
	t.Helper()
	return postgresContainer.get(t, "container")
}

var unique atomic.Int64

// Prefix returns a prefix for Redis keys that no other test has.
func Prefix(t testing.TB) string {
	return fmt.Sprintf("test:%d:%s:", unique.Add(1), strings.ToLower(t.Name()))
}

// Scope returns a scope that no other test has.
func Scope(testing.TB) stores.Scope {
	return stores.Scope(fmt.Sprintf("test_%d_%d", os.Getpid(), unique.Add(1)))
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
