package strategytest

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
)

// embeddedStores returns the stores that are always there for a strategy: a Redis in
// this process, and the model of PostgreSQL. Only a strategy that needs PostgreSQL
// itself gets a server, see [storetest.Postgres].
func embeddedStores(t testing.TB, meta *strategies.Meta) Stores {
	t.Helper()
	s := Stores{Redis: clients(storetest.EmbeddedRedis(t))}
	if meta.NeedsStore(strategies.NeedPostgres) {
		s.Postgres = pools(storetest.Postgres(t))
	}
	return s
}

// Servers returns a redis-server, a PostgreSQL and further Redis servers, as far as the
// strategy needs them, with any options. Servers are started once for the tests of a
// package, which stops them by [storetest.Main]. If one is missing, the test is
// skipped.
func Servers(t testing.TB, meta *strategies.Meta) Stores {
	t.Helper()
	var s Stores
	if slices.Contains(allNeeds(meta), strategies.NeedRedis) {
		s.Redis = clients(storetest.Redis(t))
	}
	if meta.NeedsStore(strategies.NeedPostgres) || meta.NeedsStore(strategies.NeedSource) {
		s.Postgres = pools(storetest.Postgres(t))
	}
	s.Clients = map[string]func(testing.TB) any{}
	const second = "postgres.2" // a schema of its own is a database of its own here
	if meta.NeedsStore(second) {
		open := pools(storetest.Postgres(t))
		s.Clients[second] = func(tb testing.TB) any { return open(tb) }
	}
	for _, need := range allNeeds(meta) {
		if need != strategies.NeedRedis && strings.HasPrefix(string(need), string(strategies.NeedRedis)+".") {
			s.Clients[string(need)] = func(tb testing.TB) any {
				return clients(storetest.Further(tb, string(need)).(*redisstore.Store))(tb)
			}
		}
	}
	return s
}

// allNeeds are what a strategy needs with its default options, and with each value of
// an option that has a list of them.
func allNeeds(meta *strategies.Meta) []strategies.Need {
	out := slices.Clone(meta.Needs)
	add := func(given quota.Options) {
		if sel, err := meta.Select(given); err == nil {
			out = append(out, sel.Needs...)
		}
	}
	add(nil)
	for _, o := range meta.Options {
		for _, v := range o.Values {
			add(quota.Options{o.Name: v})
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func clients(server *redisstore.Store) func(testing.TB) *redis.Client {
	return func(tb testing.TB) *redis.Client {
		c := server.Client(redisstore.ClientOptions{Pool: 16})
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
