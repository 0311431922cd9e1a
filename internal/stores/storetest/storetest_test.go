package storetest_test

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestRedisClientIsTheTestsOwn(t *testing.T) {
	server := storetest.Redis(t)
	var keys []string
	t.Run("a test", func(t *testing.T) {
		for range 2 {
			client, prefix := storetest.RedisClient(t)
			if err := client.Set(t.Context(), prefix+"k", 1, 0).Err(); err != nil {
				t.Fatal(err)
			}
			keys = append(keys, prefix+"k")
		}
	})
	if len(keys) == 2 && keys[0] == keys[1] {
		t.Error("two clients share a prefix")
	}
	if n, err := server.Admin().Exists(t.Context(), keys...).Result(); err != nil || n != 0 {
		t.Errorf("%d keys outlived their test (%v)", n, err)
	}
}

func TestPostgresPoolIsTheTestsOwn(t *testing.T) {
	outer := storetest.PostgresPool(t)
	var schema string
	t.Run("a test", func(t *testing.T) {
		pool := storetest.PostgresPool(t)
		if _, err := pool.Exec(t.Context(), "CREATE TABLE here ()"); err != nil {
			t.Fatal(err)
		}
		if err := pool.QueryRow(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil {
			t.Fatal(err)
		}
		if _, err := outer.Exec(t.Context(), "SELECT * FROM here"); err == nil {
			t.Error("another pool sees the table")
		}
	})
	var n int
	if err := outer.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname = $1",
		schema).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d schemas %q outlived their test (%v)", n, schema, err)
	}
}

// TestMissingServers: a test that lacks a server is skipped and says how to install it, and fails if the server is
// required.
func TestMissingServers(t *testing.T) {
	for name, test := range map[string]string{"redis": "TestRedisClientIsTheTestsOwn",
		"postgres": "TestPostgresPoolIsTheTestsOwn"} {
		testenv.Without(t, name, test)
	}
}

// recorder is a test that notes how it was ended.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper() {}
func (r *recorder) Fatal(args ...any) {
	r.failed, _ = args[0].(string)
	panic(r)
}

// A test on containers that lacks the import must not be skipped in silence.
func TestContainersWithoutTheImport(t *testing.T) {
	r := &recorder{TB: t}
	func() {
		defer func() { _ = recover() }()
		storetest.ContainerRedis(r)
	}()
	if !strings.Contains(r.failed, "must import") {
		t.Errorf("failed with %q", r.failed)
	}
}
