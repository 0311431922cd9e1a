package adapters

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/mennanov/limiters"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	exact := []quota.Clause{quota.Exactly(quota.FaultClock)}
	queue := []quota.Clause{{
		Property: quota.PropertyLeak, Formula: "L + 1", Tolerates: []quota.Fault{quota.FaultClock},
		Bound: func(quota.Params) int64 { return 1 },
	}}
	onRedis := []strategies.Need{strategies.NeedRedis}

	for _, m := range []struct {
		meta strategies.Meta
		make func(env strategies.Env, policy *quota.Policy, key string) limits
	}{
		{strategies.Meta{
			Name: "lib-mennanov-token-redis",
			Doc: "mennanov/limiters: a token bucket on Redis under the library's lock on Redis, with the time to live of " +
				"its README",
			Needs: onRedis, Kinds: []quota.Kind{quota.Bucket}, Guarantee: exact,
		}, func(env strategies.Env, policy *quota.Policy, key string) limits {
			backend := limiters.NewTokenBucketRedis(strategies.Redis(env), key, each(policy), false)
			return limiters.NewTokenBucket(policy.Limit, each(policy), mennanovLock(env, key), backend, wallClock,
				unlogged{}).Take
		}},
		{strategies.Meta{
			Name: "lib-mennanov-token-checked",
			Doc: "mennanov/limiters: the same without a lock, with the library's check for races, and keys that live until " +
				"the bucket is full",
			Needs: onRedis, Kinds: []quota.Kind{quota.Bucket}, Guarantee: exact,
		}, func(env strategies.Env, policy *quota.Policy, key string) limits {
			backend := limiters.NewTokenBucketRedis(strategies.Redis(env), key, fills(policy)+each(policy), true)
			return limiters.NewTokenBucket(policy.Limit, each(policy), limiters.NewLockNoop(), backend, wallClock,
				unlogged{}).Take
		}},
		{strategies.Meta{
			Name: "lib-mennanov-token-memory", Doc: "mennanov/limiters: a token bucket in memory, one per subject",
			Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		}, func(_ strategies.Env, policy *quota.Policy, _ string) limits {
			bucket := limiters.NewTokenBucket(policy.Limit, each(policy), limiters.NewLockNoop(),
				limiters.NewTokenBucketInMemory(), wallClock, unlogged{})
			return bucket.Take
		}},
		{strategies.Meta{
			Name:  "lib-mennanov-leaky-redis",
			Doc:   "mennanov/limiters: a queue on Redis that is emptied at a rate, with the library's check for races",
			Needs: onRedis, Kinds: []quota.Kind{quota.Bucket}, Guarantee: queue, Serves: single,
		}, func(env strategies.Env, policy *quota.Policy, key string) limits {
			backend := limiters.NewLeakyBucketRedis(strategies.Redis(env), key, fills(policy)+each(policy), true)
			return one(limiters.NewLeakyBucket(policy.Limit, each(policy), limiters.NewLockNoop(), backend, wallClock,
				unlogged{}))
		}},
		{strategies.Meta{
			Name:  "lib-mennanov-leaky-memory",
			Doc:   "mennanov/limiters: a queue in memory that is emptied at a rate, one per subject",
			Kinds: []quota.Kind{quota.Bucket}, Guarantee: ticked(), Serves: single,
		}, func(_ strategies.Env, policy *quota.Policy, _ string) limits {
			return one(limiters.NewLeakyBucket(policy.Limit, each(policy), limiters.NewLockNoop(),
				limiters.NewLeakyBucketInMemory(), wallClock, unlogged{}))
		}},
		{strategies.Meta{
			Name: "lib-mennanov-fixed-redis", Doc: "mennanov/limiters: a counter per window on Redis, without a lock",
			// "lenient" about the boundary between windows
			Needs: onRedis, Kinds: []quota.Kind{quota.Fixed}, Guarantee: []quota.Clause{{
				Property: quota.PropertyLeak, Formula: "2 L", Tolerates: []quota.Fault{quota.FaultClock},
				Bound: func(params quota.Params) int64 { return params.Limit },
			}}, Serves: single,
		}, func(env strategies.Env, policy *quota.Policy, key string) limits {
			return one(limiters.NewFixedWindow(policy.Limit, policy.Window.RealLength(),
				limiters.NewFixedWindowRedis(strategies.Redis(env), key), wallClock))
		}},
		{strategies.Meta{
			Name: "lib-mennanov-fixed-memory", Doc: "mennanov/limiters: a counter per window in memory, one per subject",
			Kinds: []quota.Kind{quota.Fixed}, Guarantee: quota.PerInstance(quota.FaultClock),
			Serves: single,
		}, func(_ strategies.Env, policy *quota.Policy, _ string) limits {
			return one(limiters.NewFixedWindow(policy.Limit, policy.Window.RealLength(), limiters.NewFixedWindowInMemory(),
				wallClock))
		}},
		{strategies.Meta{
			Name:  "lib-mennanov-sliding-redis",
			Doc:   "mennanov/limiters: two counted windows on Redis, the one before weighed, without a lock",
			Needs: onRedis, Kinds: []quota.Kind{quota.Rolling},
			Guarantee: []quota.Clause{quota.Weighted(quota.FaultClock), quota.MayReject(quota.FaultClock)},
			Serves:    single,
		}, func(env strategies.Env, policy *quota.Policy, key string) limits {
			return mennanovSliding(policy, limiters.NewSlidingWindowRedis(strategies.Redis(env), key))
		}},
		{strategies.Meta{
			Name:  "lib-mennanov-sliding-memory",
			Doc:   "mennanov/limiters: two counted windows in memory, the one before weighed, one per subject",
			Kinds: []quota.Kind{quota.Rolling}, Guarantee: []quota.Clause{weighted(), quota.MayReject(quota.FaultClock)},
			Serves: single,
		}, func(_ strategies.Env, policy *quota.Policy, _ string) limits {
			return mennanovSliding(policy, limiters.NewSlidingWindowInMemory())
		}},
	} {
		m.meta.Foreign = true
		library(m.meta, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
			return &mennanov{make: func(key string) limits { return m.make(env, policy, key) }}, nil
		})
	}
}

// limits asks one of the library's limiters for units.
type limits func(ctx context.Context, units int64) (time.Duration, error)

// mennanov keeps a limiter for each subject, as its registry does.
type mennanov struct {
	make     func(key string) limits
	limiters sync.Map
}

func (m *mennanov) take(ctx context.Context, key string, units int64) (int64, error) {
	value, ok := m.limiters.Load(key)
	if !ok {
		value, _ = m.limiters.LoadOrStore(key, m.make(key))
	}
	_, err := value.(limits)(ctx, units)
	switch {
	case errors.Is(err, limiters.ErrLimitExhausted):
		return 0, nil
	case errors.Is(err, limiters.ErrRaceCondition):
		return 0, fmt.Errorf("%w: %w", strategies.ErrContention, err)
	}
	return all(err == nil, units), err
}

// one asks for the one unit that such a limiter grants. A queue says besides how long
// its caller is to wait; admitted is what it takes.
func one(l interface {
	Limit(ctx context.Context) (time.Duration, error)
}) limits {
	return func(ctx context.Context, _ int64) (time.Duration, error) { return l.Limit(ctx) }
}

// mennanovSliding has the epsilon of the library's own tests.
func mennanovSliding(policy *quota.Policy, backend limiters.SlidingWindowIncrementer) limits {
	return one(limiters.NewSlidingWindow(policy.Limit, policy.Window.RealLength(), backend, wallClock, 1e-9))
}

// mennanovLock is the library's lock on Redis. What it takes from the clock and from
// random numbers of its own is given, so that a schedule can be repeated: who holds it, and
// how long a caller waits before it asks again.
func mennanovLock(env strategies.Env, key string) limiters.DistLocker {
	var locks atomic.Int64
	holder := func() (string, error) { return fmt.Sprintf("%d/%d", env.Instance, locks.Add(1)), nil }
	return limiters.NewLockRedis(goredis.NewPool(strategies.Redis(env)), key+
		":lock", redsync.WithGenValueFunc(holder), redsync.WithRetryDelay(lockDelay))
}

// lockDelay is the middle of what the lock draws from.
const lockDelay = 150 * time.Millisecond

// each is the time in which a unit flows in.
func each(policy *quota.Policy) time.Duration {
	return policy.Window.RealLength() / time.Duration(policy.Window.Refill)
}

// fills is the time in which the bucket fills.
func fills(policy *quota.Policy) time.Duration { return time.Duration(policy.Limit) * each(policy) }

var wallClock = limiters.NewSystemClock()

// unlogged drops what the library logs: locks that it could not give back.
type unlogged struct{}

func (unlogged) Log(...any) {}
