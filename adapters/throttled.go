package adapters

import (
	"context"
	"fmt"
	"strings"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	exact := []quota.Clause{quota.Exactly(quota.FaultClock)}
	library(strategies.Meta{
		Name: "lib-throttled-redis", Doc: "throttled/throttled: GCRA by compare and swap on Redis",
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.Bucket}, Guarantee: exact,
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		store, err := goredisstore.NewCtx(strategies.Redis(env), "")
		if err != nil {
			return nil, err
		}
		return newThrottled(store, policy)
	})
	library(strategies.Meta{
		Name: "lib-throttled-memory", Doc: "throttled/throttled: GCRA in memory, by the clock of package time",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		gcraStoreCtx, err := memstore.NewCtx(0)
		if err != nil {
			return nil, err
		}
		return newThrottled(gcraStoreCtx, policy)
	})
}

type gcra struct{ *throttled.GCRARateLimiterCtx }

func newThrottled(gcraStoreCtx throttled.GCRAStoreCtx, policy *quota.Policy) (limiter, error) {
	gcraRateLimiterCtx, err := throttled.NewGCRARateLimiterCtx(gcraStoreCtx, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(int(policy.Window.Refill), policy.Window.RealLength()),
		MaxBurst: int(policy.Limit - 1),
	})
	return gcra{gcraRateLimiterCtx}, err
}

func (g gcra) take(ctx context.Context, key string, units int64) (int64, error) {
	limited, _, err := g.RateLimitCtx(ctx, key, int(units))
	if err != nil && strings.Contains(err.Error(), "Failed to store updated rate limit data") {
		err = fmt.Errorf("%w: %w", strategies.ErrContention, err) // after ten attempts, as is its default
	}
	return all(err == nil && !limited, units), err
}
