package strategytest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
)

// Embedded returns the stores that are always there for a strategy: a Redis in
// this process, and the model of PostgreSQL. Only a strategy that needs PostgreSQL
// itself gets a server, see [storetest.Postgres].
func Embedded(t testing.TB, meta *strategies.Meta) Stores {
	t.Helper()
	s := Stores{Redis: clients(storetest.EmbeddedRedis(t))}
	if meta.NeedsStore(strategies.NeedPostgres) {
		s.Postgres = pools(storetest.Postgres(t))
	}
	return s
}

// Servers returns a redis-server and a PostgreSQL, as far as the strategy needs
// them. Servers are started once for the tests of a package, which stops them by
// [storetest.Main]. Where one is missing, the test is skipped.
func Servers(t testing.TB, meta *strategies.Meta) Stores {
	t.Helper()
	var s Stores
	if asksFor(meta, strategies.NeedRedis) {
		s.Redis = clients(storetest.Redis(t))
	}
	if meta.NeedsStore(strategies.NeedPostgres) || meta.NeedsStore(strategies.NeedSource) {
		s.Postgres = pools(storetest.Postgres(t))
	}
	const second = "postgres.2" // a schema of its own is a database of its own here
	if meta.NeedsStore(second) {
		open := pools(storetest.Postgres(t))
		s.Clients = map[string]func(testing.TB) any{second: func(tb testing.TB) any { return open(tb) }}
	}
	return s
}

// asksFor reports whether the strategy needs the store, by itself or with a value of
// one of its options.
func asksFor(meta *strategies.Meta, need strategies.Need) bool {
	if meta.NeedsToo != nil {
		for _, o := range meta.Options {
			for _, v := range o.Values {
				if sel, err := meta.Select(quota.Options{o.Name: v}); err == nil && sel.NeedsStore(need) {
					return true
				}
			}
		}
	}
	return meta.NeedsStore(need)
}

func clients(server *redisstore.Store) func(testing.TB) *redis.Client {
	return func(tb testing.TB) *redis.Client {
		c := server.Client(redisstore.ClientOptions{PoolSize: 16})
		tb.Cleanup(func() {
			if err := c.Close(); err != nil {
				tb.Error(err)
			}
		})
		return c
	}
}

func pools(server *pgstore.Store) func(testing.TB) *pgxpool.Pool {
	return func(tb testing.TB) *pgxpool.Pool {
		p, err := server.Pool(tb.Context(), pgstore.PoolOptions{Schema: storetest.Schema(tb, server), Size: 8})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(p.Close)
		return p
	}
}
