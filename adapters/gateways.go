package adapters

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Gateways are no libraries: what decides in them is rebuilt here, in words of our own,
// from what they publish.

//go:embed gateway_kong.lua
var kongScript string

//go:embed gateway_spring.lua
var springScript string

//go:embed gateway_cell.lua
var cellScript string

//go:embed gateway_stripe.lua
var stripeScript string

func init() {
	exact := []quota.Clause{quota.Exactly(quota.FaultClock)}
	redisNeed := []strategies.Need{strategies.NeedRedis}
	library(strategies.Meta{
		Name: "gw-kong-redis",
		About: strategies.About{
			Source: "Kong, plugin rate-limiting, policy redis, sync_rate -1",
			Notes: strategies.Notes{How: []string{
				"The gateway numbers windows by its own clock.",
				"One script raises the counter of the window, and gives it a lifetime of one window when it is new.",
				"The request is admitted if fewer than the limit were counted before it.",
			}, Deviations: []string{"Redis in cluster mode, and policies of several periods at once, are left out."}},
		},
		Form:  strategies.Reference,
		Doc:   "a counter of a numbered window that is raised before it is compared",
		Needs: redisNeed, Kinds: []quota.Kind{quota.Fixed}, Guarantee: exact,
		Serves: wholeSeconds,
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return kong{strategies.Redis(env), env.Clock, policy}, nil
	})
	library(strategies.Meta{
		Name: "gw-spring",
		About: strategies.About{
			Source: "Spring Cloud Gateway, request_rate_limiter.lua",
			Notes: strategies.Notes{How: []string{
				"One script reads the tokens and the second in which they were counted.",
				"It adds what has flowed in during the whole seconds since.",
				"It takes the tokens if there are enough, and keeps the bucket for twice the time in which it fills, in whole " +
					"seconds.",
			}},
		},
		Form:  strategies.Reference,
		Doc:   "a token bucket that counts time in whole seconds of the server's clock",
		Needs: redisNeed, Kinds: []quota.Kind{quota.Bucket}, Guarantee: exact,
		Serves: wholePerSecond,
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return spring{strategies.Redis(env), policy}, nil
	})
	library(strategies.Meta{
		Name: "gw-cloudflare",
		About: strategies.About{
			Source: "Cloudflare, counting things a lot of different things",
			Notes: strategies.Notes{How: []string{
				"The gateway numbers windows by its own clock, and reads the counters of this one and the one before.",
				"It weights the previous one by its share of the rolling window.",
				"A request that fits is admitted, and counted afterwards.",
			}, Deviations: []string{"The source counts in memcached, asynchronously; here INCR on Redis comes before the " +
				"answer, which is the gentler order."}},
		},
		Form: strategies.Reference,
		Doc:  "two numbered windows, the one before weighed, read first and counted afterwards",
		// The source promises an approximation and gives no bound for what is over the limit.
		Needs: redisNeed, Kinds: []quota.Kind{quota.Rolling}, Serves: wholeSeconds,
		Guarantee: []quota.Clause{quota.MayReject(quota.FaultClock)},
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return cloudflare{strategies.Redis(env), env.Clock, policy}, nil
	})
	library(strategies.Meta{
		Name: "gw-redis-cell",
		About: strategies.About{
			Source: "redis-cell, CL.THROTTLE",
			Notes: strategies.Notes{How: []string{
				"One command keeps the moment at which all units would be free again.",
				"It admits a request where that moment, moved on by the units asked for, is no further ahead than the units that " +
					"there may be at once.",
				"The key lives until that moment, in whole milliseconds, rounded down.",
			}, Deviations: []string{"The module is written in Rust and reads its clock in nanoseconds; here a script reads " +
				"TIME, in microseconds. A key lives for a millisecond at least."}},
		},
		Form:  strategies.Reference,
		Doc:   "GCRA in one command of the server, by the server's clock",
		Needs: redisNeed, Kinds: []quota.Kind{quota.Bucket}, Guarantee: exact,
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return cell{strategies.Redis(env), policy}, nil
	})
	library(strategies.Meta{
		Name: "gw-stripe",
		About: strategies.About{
			Source: "Stripe, scaling your API with rate limiters",
			Notes: strategies.Notes{How: []string{
				"One script reads the tokens and the second in which they were counted, and adds what has flowed in by the " +
					"caller's second.",
				"It takes the tokens if there are enough, and keeps both for twice the time in which the bucket fills, in whole " +
					"seconds.",
				"Where the script fails, the caller is admitted.",
			}},
		},
		Form:  strategies.Reference,
		Doc:   "a token bucket in one Lua script, by its callers' clocks in whole seconds; what fails is admitted",
		Needs: redisNeed, Kinds: []quota.Kind{quota.Bucket}, Guarantee: exact,
		Serves: wholePerSecond,
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return stripe{strategies.Redis(env), env.Clock, policy}, nil
	})
}

type cell struct {
	redis  redis.UniversalClient
	policy *quota.Policy
}

func (c cell) take(ctx context.Context, key string, units int64) (int64, error) {
	each := int64(c.policy.Window.RealLength()) / c.policy.Window.Refill
	admitted, err := c.redis.Eval(ctx, cellScript, []string{key}, each, c.policy.Limit, units).Int64()
	return all(err == nil && admitted == 1, units), err
}

type stripe struct {
	redis  redis.UniversalClient
	clock  quota.Clock
	policy *quota.Policy
}

func (s stripe) take(ctx context.Context, key string, units int64) (int64, error) {
	keys := []string{"{" + key + "}.tokens", "{" + key + "}.timestamp"}
	admitted, err := s.redis.Eval(ctx, stripeScript, keys, int64(perSecond(s.policy)), s.policy.Limit,
		s.clock.Now().Unix(), units).Int64()
	return all(err != nil || admitted == 1, units), ctx.Err()
}

type kong struct {
	redis  redis.UniversalClient
	clock  quota.Clock
	policy *quota.Policy
}

func (k kong) take(ctx context.Context, key string, units int64) (int64, error) {
	window := k.policy.Window
	key = fmt.Sprintf("%s:%d", key, window.At(k.clock.Now()).Index)
	before, err := k.redis.Eval(ctx, kongScript, []string{key}, int64(window.RealLength()/time.Second)).Int64()
	return all(err == nil && before < k.policy.Limit, units), err
}

type spring struct {
	redis  redis.UniversalClient
	policy *quota.Policy
}

func (s spring) take(ctx context.Context, key string, units int64) (int64, error) {
	admitted, err := s.redis.Eval(ctx, springScript, []string{key}, int64(perSecond(s.policy)), s.policy.Limit,
		units).Int64()
	return all(err == nil && admitted == 1, units), err
}

type cloudflare struct {
	redis  redis.UniversalClient
	clock  quota.Clock
	policy *quota.Policy
}

func (c cloudflare) take(ctx context.Context, key string, units int64) (int64, error) {
	window := c.policy.Window
	window.Kind = quota.Fixed // numbered windows of its length
	now := c.clock.Now()
	span := window.At(now)
	whole := span.End.Sub(span.Start)
	left := span.End.Sub(now)
	keys := []string{fmt.Sprintf("%s:%d", key, span.Index), fmt.Sprintf("%s:%d", key, span.Index-1)}
	values, err := c.redis.MGet(ctx, keys...).Result()
	if err != nil {
		return 0, err
	}
	var counts [2]int64
	for i, value := range values {
		if text, ok := value.(string); ok {
			counts[i], err = strconv.ParseInt(text, 10, 64)
			if err != nil {
				return 0, err
			}
		}
	}
	if float64(counts[0])+float64(counts[1])*left.Seconds()/whole.Seconds()+1 > float64(c.policy.Limit) {
		return 0, nil
	}
	counted, err := c.redis.Incr(ctx, keys[0]).Result()
	if err == nil && counted == 1 {
		err = c.redis.Expire(ctx, keys[0], 2*whole).Err()
	}
	return all(err == nil, units), err
}
