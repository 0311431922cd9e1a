package adapters

import (
	"context"

	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	exact := []quota.Clause{quota.Exactly(quota.FaultClock)}
	library(strategies.Meta{
		Name: "lib-ulule-redis", Doc: "ulule/limiter: a counter that lives as long as its window, in one Lua script",
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.FirstRequest}, Guarantee: exact,
		Serves:  single,
		Foreign: true, // it loads its script under a context of its own
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		store, err := ululeredis.NewStoreWithOptions(strategies.Redis(env), ulule.StoreOptions{Prefix: "limiter"})
		if err != nil {
			return nil, err
		}
		return newUlule(store, policy), nil
	})
	library(strategies.Meta{
		Name: "lib-ulule-memory", Doc: "ulule/limiter: a counter in memory that lives as long as its window",
		Kinds: []quota.Kind{quota.FirstRequest}, Guarantee: quota.PerInstance(quota.FaultClock),
		Serves:  single,
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		// The cleaner of its defaults ends with a garbage collection only, and is left out.
		return newUlule(memory.NewStoreWithOptions(ulule.StoreOptions{Prefix: ulule.DefaultPrefix}), policy), nil
	})
}

type ululeLimiter struct{ *ulule.Limiter }

func newUlule(store ulule.Store, policy *quota.Policy) limiter {
	return ululeLimiter{ulule.New(store, ulule.Rate{Period: policy.Window.RealLength(), Limit: policy.Limit})}
}

func (l ululeLimiter) take(ctx context.Context, key string, units int64) (int64, error) {
	c, err := l.Get(ctx, key)
	return all(err == nil && !c.Reached, units), err
}
