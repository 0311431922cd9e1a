package adapters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	zero "github.com/zeromicro/go-zero/core/stores/redis"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	logx.Disable() // it writes to standard output
	exact := []quota.Clause{quota.Exactly(quota.FaultClock)}
	library(strategies.Meta{
		Name: "lib-go-zero-period", Doc: "zeromicro/go-zero: a counter that lives as long as its period, in one Lua script",
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.FirstRequest}, Guarantee: exact,
		Serves: wholeSeconds, Foreign: true,
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return zeroPeriod{limit.NewPeriodLimit(int(policy.Window.RealLength()/time.Second), int(policy.Limit),
			zeroStore(strategies.Redis(env)), "")}, nil
	})
	library(strategies.Meta{
		Name: "lib-go-zero-token", Doc: "zeromicro/go-zero: a token bucket in one Lua script, by the clocks of its callers",
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.Bucket}, Guarantee: exact,
		Serves: wholePerSecond, Foreign: true,
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return &zeroTokens{store: zeroStore(strategies.Redis(env)), rate: int(perSecond(policy)), burst: int(policy.Limit)},
			nil
	})
}

// wholeSeconds refuses policies whose window go-zero cannot be told.
func wholeSeconds(policy *quota.Policy) error {
	if policy.Window.RealLength()%time.Second != 0 {
		return fmt.Errorf("policy %s has a window of %v, and only whole seconds are served", policy.Name,
			policy.Window.RealLength())
	}
	return single(policy)
}

// wholePerSecond refuses policies whose rate is not a whole number of units a second.
func wholePerSecond(policy *quota.Policy) error {
	if r := perSecond(policy); r != float64(int(r)) {
		return fmt.Errorf("policy %s refills %g %s per second, and only whole numbers are served", policy.Name, r,
			policy.Unit)
	}
	return nil
}

// perSecond is the rate of a bucket in units per second.
func perSecond(policy *quota.Policy) float64 {
	return float64(policy.Window.Refill) / policy.Window.RealLength().Seconds()
}

// zeroStores numbers the stores: go-zero keeps one client for each address.
var zeroStores atomic.Int64

// zeroStore is go-zero's store with its commands on a client that is given. It takes it
// for a cluster, whose client connects to nothing before it has a command.
func zeroStore(client redis.UniversalClient) *zero.Redis {
	return zero.New(fmt.Sprintf("store-%d", zeroStores.Add(1)), zero.Cluster(), zero.WithHook(zeroHook{client}))
}

// zeroHook sends commands on.
type zeroHook struct{ client redis.UniversalClient }

func (h zeroHook) ProcessHook(redis.ProcessHook) redis.ProcessHook { return h.client.Process }

var errNoNetwork = errors.New("go-zero's own client is not used")

func (h zeroHook) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errNoNetwork }
}

func (h zeroHook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return errNoNetwork }
}

type zeroPeriod struct{ *limit.PeriodLimit }

func (z zeroPeriod) take(ctx context.Context, key string, units int64) (int64, error) {
	state, err := z.TakeCtx(ctx, key)
	return all(err == nil && state != limit.OverQuota, units), err
}

// zeroTokens keeps a limiter for each subject, as go-zero's are made for one key.
type zeroTokens struct {
	store       *zero.Redis
	rate, burst int
	limiters    sync.Map
}

func (z *zeroTokens) take(ctx context.Context, key string, units int64) (int64, error) {
	value, ok := z.limiters.Load(key)
	if !ok {
		value, _ = z.limiters.LoadOrStore(key, limit.NewTokenLimiter(z.rate, z.burst, z.store, key))
	}
	return all(value.(*limit.TokenLimiter).AllowNCtx(ctx, time.Now(), int(units)), units),
		nil //nolint:forbidigo // as its users call it
}
