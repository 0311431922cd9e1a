package adapters

import (
	"context"

	"github.com/go-redis/redis_rate/v10"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	meta := strategies.Meta{
		Name: "lib-redis-rate", Doc: "go-redis/redis_rate: GCRA in one Lua script, by the server's clock",
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.Bucket},
		Guarantee: []quota.Clause{{
			Property: quota.PropertyLeak, Clock: "redis", Formula: "L", Tolerates: []quota.Fault{quota.FaultClock},
			Bound: func(quota.Params) int64 { return 0 },
		}},
	}
	library(meta, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return newRedisRate(env, policy, false), nil
	})
	meta.Name = "lib-redis-rate-at-most"
	meta.Doc = "go-redis/redis_rate: AllowAtMost, which grants what is left of what is asked for"
	meta.Foreign = true // what it grants depends on parts of units, and on moments between two of them
	library(meta, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return newRedisRate(env, policy, true), nil
	})
}

// redisRate is AllowN, or AllowAtMost.
type redisRate struct {
	limiter *redis_rate.Limiter
	limit   redis_rate.Limit
	partial bool
}

func newRedisRate(env strategies.Env, policy *quota.Policy, partial bool) *redisRate {
	return &redisRate{
		redis_rate.NewLimiter(strategies.Redis(env)),
		redis_rate.Limit{Rate: int(policy.Window.Refill), Period: policy.Window.RealLength(), Burst: int(policy.Limit)},
		partial,
	}
}

func (r *redisRate) take(ctx context.Context, key string, units int64) (int64, error) {
	ask := r.limiter.AllowN
	if r.partial {
		ask = r.limiter.AllowAtMost
	}
	res, err := ask(ctx, key, r.limit, int(units))
	if err != nil {
		return 0, err
	}
	return int64(res.Allowed), nil
}
