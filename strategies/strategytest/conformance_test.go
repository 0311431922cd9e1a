package strategytest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestEmbedded runs the suite for every strategy on what is always there:
// miniredis, and the model of PostgreSQL.
func TestEmbedded(t *testing.T) {
	server := storetest.EmbeddedRedis(t)
	RunAll(t, func(*testing.T, *strategies.Meta) Stores {
		return Stores{Redis: client(server)}
	})
}

// TestServers runs it on a redis-server and on PostgreSQL.
func TestServers(t *testing.T) {
	RunAll(t, func(t *testing.T, m *strategies.Meta) Stores {
		if len(m.Needs) == 0 {
			t.Skip("needs no store: TestEmbedded has tested it")
		}
		var s Stores
		if m.NeedsStore(strategies.NeedRedis) {
			s.Redis = client(storetest.Redis(t))
		}
		if m.NeedsStore(strategies.NeedPostgres) || m.NeedsStore(strategies.NeedSource) {
			s.Postgres = pool(storetest.Postgres(t))
		}
		return s
	})
}

func client(server *redisstore.Store) func(testing.TB) *redis.Client {
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

func pool(server *pgstore.Store) func(testing.TB) *pgxpool.Pool {
	return func(tb testing.TB) *pgxpool.Pool {
		p, err := server.Pool(tb.Context(), pgstore.PoolOptions{Schema: storetest.Schema(tb, server), Size: 8})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(p.Close)
		return p
	}
}
