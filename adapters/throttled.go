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
	}, func(env strategies.Env, p *quota.Policy) (limiter, error) {
		st, err := goredisstore.NewCtx(strategies.Redis(env), "")
		if err != nil {
			return nil, err
		}
		return newThrottled(st, p)
	})
	library(strategies.Meta{
		Name: "lib-throttled-memory", Doc: "throttled/throttled: GCRA in memory, by the clock of package time",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock), Foreign: true,
	}, func(_ strategies.Env, p *quota.Policy) (limiter, error) {
		st, err := memstore.NewCtx(0)
		if err != nil {
			return nil, err
		}
		return newThrottled(st, p)
	})
}

type gcra struct{ *throttled.GCRARateLimiterCtx }

func newThrottled(st throttled.GCRAStoreCtx, p *quota.Policy) (limiter, error) {
	l, err := throttled.NewGCRARateLimiterCtx(st, throttled.RateQuota{
		MaxRate: throttled.PerDuration(int(p.Window.Refill), p.Window.RealLength()), MaxBurst: int(p.Limit - 1),
	})
	return gcra{l}, err
}

func (g gcra) take(ctx context.Context, key string, units int64) (int64, error) {
	limited, _, err := g.RateLimitCtx(ctx, key, int(units))
	if err != nil && strings.Contains(err.Error(), "Failed to store updated rate limit data") {
		err = fmt.Errorf("%w: %w", strategies.ErrContention, err) // after ten attempts, as is its default
	}
	return all(err == nil && !limited, units), err
}
