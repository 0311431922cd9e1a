package measure

import (
	"context"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// serverState is what a Redis server says about itself around a pass.
type serverState struct {
	stores.RedisStats
	ok bool
}

func (s *site) redisState(ctx context.Context) serverState {
	if s.cfg.Redis == nil || !s.sel.NeedsStore(strategies.NeedRedis) {
		return serverState{}
	}
	st, ok, err := s.cfg.Redis.Stats(ctx)
	return serverState{RedisStats: st, ok: ok && err == nil}
}

// sqlState is what PostgreSQL says about itself; zero where there is none.
func (s *site) sqlState(ctx context.Context) stores.PostgresStats {
	if s.schema == "" {
		return stores.PostgresStats{}
	}
	st, _, err := s.cfg.Postgres.Stats(ctx)
	if err != nil {
		return stores.PostgresStats{}
	}
	return st
}

// strayKeys counts keys that exist under the run's prefix before its first request.
func (s *site) strayKeys(ctx context.Context) int64 {
	if len(s.clients) == 0 {
		return 0
	}
	total, _, err := s.cfg.Redis.KeysUnder(ctx, s.prefix)
	if err != nil {
		return 0 // the run itself will show that the store is gone
	}
	return total
}

// counted is the traffic of a site's connections.
type counted struct{ redis, sql stores.Counts }

func (s *site) counted() counted {
	return counted{redis: s.redisMeter.Snapshot(), sql: s.sqlMeter.Snapshot()}
}

func (c counted) sub(earlier counted) counted {
	return counted{redis: c.redis.Sub(earlier.redis), sql: c.sql.Sub(earlier.sql)}
}
