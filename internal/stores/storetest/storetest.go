// Package storetest starts real stores for tests.
//
//	func TestLimiter(t *testing.T) {
//		client, prefix := storetest.RedisClient(t)
//		limiter := mylimiter.New(client, prefix)
//		…
//	}
//
// A server is a private child process on a loopback port, started once per test
// binary and shared by its tests, each with keys or a schema of its own. A package
// that uses one stops it with
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
//
// Without that it ends with the test binary on Linux, and elsewhere when the next
// server is started.
//
// A store that is missing on this machine skips the test, which says how to install it.
// The environment decides further:
//
//   - QUOTABENCH_REQUIRE is a comma-separated list of redis, postgres, container
//     and the names given to [Shared], e.g. etcd. The test fails if one of these
//     is missing.
//   - QUOTABENCH_REDIS_IMAGE and QUOTABENCH_POSTGRES_IMAGE name the images of
//     containers, instead of the drivers' own. None is downloaded.
//   - TMPDIR is where the servers keep their files. If the tests run as root, the
//     servers do not, and must be able to enter it.
//
// Tests on containers import package stores/container.
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
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/stores/redis"
)

// Environment variables that name the images of containers.
const (
	RedisImageEnv    = "QUOTABENCH_REDIS_IMAGE"
	PostgresImageEnv = "QUOTABENCH_POSTGRES_IMAGE"
)

// Servers have long to start: the machine may be busy with other tests.
func init() {
	server.OpenTimeout = 3 * time.Minute
	server.ReachTimeout = 3 * time.Minute
}

// shared is a store that all tests of a binary share. The first call opens it.
type shared = func() (stores.Store, error)

// all are the stores of this binary by name, and in the order in which tests asked for them.
var all = struct {
	mu    sync.Mutex
	named map[string]shared
	order []shared
}{named: map[string]shared{}}

// share returns the store with the name, which the first test that asks for it opens. It
// skips the test if what it needs is missing.
func share(t testing.TB, name, need string, open func(context.Context) (stores.Store, error)) stores.Store {
	t.Helper()
	all.mu.Lock()
	opened := all.named[name]
	if opened == nil {
		opened = sync.OnceValues(func() (stores.Store, error) { return open(context.Background()) })
		all.named[name] = opened
		all.order = append(all.order, opened)
	}
	all.mu.Unlock()
	store, err := opened()
	programs.Need(t, need, err)
	return store
}

// sharedRedis is the Redis that a spec opens.
func sharedRedis(t testing.TB, spec, need string) *redis.Store {
	t.Helper()
	return share(t, "redis "+spec, need, func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(redis.Open)(ctx, spec, stores.Options{Image: os.Getenv(RedisImageEnv), NoPull: true})
	}).(*redis.Store)
}

// sharedPostgres is the PostgreSQL that a spec opens.
func sharedPostgres(t testing.TB, spec, need string) *postgres.Store {
	t.Helper()
	return share(t, "postgres "+spec, need, func(ctx context.Context) (stores.Store, error) {
		// Tests must not wait for the disk. What they decide does not depend on it: the server may
		// be killed, but the machine may not.
		return stores.Opener(postgres.Open)(ctx, spec, stores.Options{
			Image: os.Getenv(PostgresImageEnv), NoPull: true, Settings: map[string]string{"fsync": "off"},
		})
	}).(*postgres.Store)
}

// Main runs the tests, stops what they started, calls each of ends, and exits.
func Main(m *testing.M, ends ...func() error) {
	code := m.Run()
	for _, opened := range slices.Backward(all.order) { // replicas before what they follow
		if store, err := opened(); err == nil {
			if err := store.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "storetest:", err)
				code = max(code, 1)
			}
		}
	}
	for _, end := range ends {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "storetest:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Shared returns a store of another kind, which the first test that asks for the name
// opens and all tests of the binary share. It skips the test if the store is
// missing, and fails it if QUOTABENCH_REQUIRE has the name.
func Shared(t testing.TB, name string, open func(context.Context) (stores.Store, error)) stores.Store {
	t.Helper()
	return share(t, name, name, open)
}

// Redis returns the redis-server of this test binary. It is shared: keys must
// begin with a [Prefix] or that of a [Scope].
func Redis(t testing.TB) *redis.Store {
	t.Helper()
	return sharedRedis(t, "process", "redis")
}

// RedisClient returns a client of the redis-server of this test binary, and a
// prefix for keys. Both are the test's own: the client is closed and the keys are
// removed when the test ends.
func RedisClient(t testing.TB) (client *goredis.Client, prefix string) {
	t.Helper()
	store := Redis(t)
	scope := Scope(t)
	client = store.Client(redis.ClientOptions{})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Wipe(context.Background(), scope); err != nil {
			t.Error(err)
		}
	})
	return client, scope.Prefix()
}

// ContainerRedis is as [Redis], in a container.
func ContainerRedis(t testing.TB) *redis.Store {
	t.Helper()
	requireContainers(t)
	return sharedRedis(t, "container", "container")
}

// EmbeddedRedis returns a Redis in this process that the test has to itself. It is
// always there.
func EmbeddedRedis(t testing.TB) *redis.Store {
	t.Helper()
	store, err := redis.Open(context.Background(), "embedded", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Postgres returns the PostgreSQL of this test binary. It is shared: tables
// belong into a [Schema].
func Postgres(t testing.TB) *postgres.Store {
	t.Helper()
	return sharedPostgres(t, "process", "postgres")
}

// PostgresPool returns a pool of connections to the PostgreSQL of this test
// binary. Their search path is a schema of the test's own, which is removed when
// the test ends.
func PostgresPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	store := Postgres(t)
	pool, err := store.Pool(context.Background(), postgres.PoolOptions{Schema: Schema(t, store)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// ContainerPostgres is as [Postgres], in a container.
func ContainerPostgres(t testing.TB) *postgres.Store {
	t.Helper()
	requireContainers(t)
	return sharedPostgres(t, "container", "container")
}

// requireContainers fails a test that forgot an import, which would otherwise be
// skipped everywhere.
func requireContainers(t testing.TB) {
	t.Helper()
	if !server.ContainersBuiltIn() {
		t.Fatal("a test on containers must import github.com/quotabench/quotabench/stores/container")
	}
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
func Schema(t testing.TB, store *postgres.Store) string {
	t.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), unique.Add(1))
	if err := store.CreateSchema(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.DropSchema(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return name
}

// Further returns a store of this test binary other than [Redis] or [Postgres], by
// the name by which a run knows it, e.g. "redis.2", "redis.durable" or
// "postgres.replica". It is started as a process, once, and shared.
func Further(t testing.TB, name string) stores.Store {
	t.Helper()
	driver, err := stores.DriverOf(name)
	if err != nil {
		t.Fatal(err)
	}
	var main stores.Store
	switch driver.Name {
	case "redis":
		main = Redis(t)
	case "postgres":
		main = Postgres(t)
	default:
		t.Fatalf("no store beside %s is started here", driver.Name)
	}
	if name == driver.Name {
		return main
	}
	return share(t, name, driver.Name, func(ctx context.Context) (stores.Store, error) {
		store, err := driver.Further(ctx, stores.Further{Name: name, Main: main, MainSpec: "process"})
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
		return store, nil
	})
}
