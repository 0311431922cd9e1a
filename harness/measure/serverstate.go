package measure

import (
	"context"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// redisState is what the Redis server says about itself around a pass; zero where
// there is none or it does not answer.
func (s *site) redisState(ctx context.Context) stores.Stats {
	if s.cfg.Redis == nil || !s.sel.NeedsStore(strategies.NeedRedis) {
		return stores.Stats{}
	}
	st, err := s.cfg.Redis.Stats(ctx)
	if err != nil {
		return stores.Stats{}
	}
	return st
}

// sqlState is what PostgreSQL says about itself; zero where there is none.
func (s *site) sqlState(ctx context.Context) stores.Stats {
	if !s.sql {
		return stores.Stats{}
	}
	st, err := s.cfg.Postgres.Stats(ctx)
	if err != nil {
		return stores.Stats{}
	}
	return st
}

// strayKeys counts keys that exist under the run's prefix before its first request.
func (s *site) strayKeys(ctx context.Context) int64 {
	if !s.sel.NeedsStore(strategies.NeedRedis) {
		return 0
	}
	u, err := s.cfg.Redis.Usage(ctx, s.scope)
	if err != nil {
		return 0 // the run itself will show that the store is gone
	}
	return u.Keys
}

// counted is the traffic of a site's connections.
type counted struct{ redis, sql stores.Counts }

func (s *site) counted() counted {
	return counted{redis: s.redisMeter.Snapshot(), sql: s.sqlMeter.Snapshot()}
}

func (c counted) sub(earlier counted) counted {
	return counted{redis: c.redis.Sub(earlier.redis), sql: c.sql.Sub(earlier.sql)}
}
