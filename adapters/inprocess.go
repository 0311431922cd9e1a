package adapters

import (
	"context"
	"sync"
	"time"

	clever "github.com/Clever/leakybucket"
	"github.com/Clever/leakybucket/memory"
	"github.com/RussellLuo/slidingwindow"
	beefsack "github.com/beefsack/go-rate"
	"github.com/cockroachdb/tokenbucket"
	"github.com/didip/tollbooth/v7"
	boothlimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/juju/ratelimit"
	kevinms "github.com/kevinms/leakybucket-go"
	jaeger "github.com/uber/jaeger-client-go/utils"
	"golang.org/x/time/rate"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	library(strategies.Meta{
		Name: "lib-x-time-rate", Doc: "golang.org/x/time/rate: a bucket in memory, one per subject",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return &perKey{make: func() bucket {
			return xtime{rate.NewLimiter(rate.Limit(perSecond(policy)), int(policy.Limit))}
		}}, nil
	})
	library(strategies.Meta{
		Name: "lib-juju-ratelimit", Doc: "juju/ratelimit: a bucket in memory that is filled in ticks, one per subject",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: ticked(), Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		each := policy.Window.RealLength() / time.Duration(policy.Window.Refill)
		return &perKey{make: func() bucket { return juju{ratelimit.NewBucket(each, policy.Limit)} }}, nil
	})
	library(strategies.Meta{
		Name: "lib-failsafe-bursty", Doc: "failsafe-go: its bursty limiter, a counter per period, one per subject",
		Kinds: []quota.Kind{quota.Rolling}, Guarantee: []quota.Clause{twice()},
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return &perKey{make: func() bucket {
			return failsafe{ratelimiter.NewBursty[any](uint(policy.Limit), policy.Window.RealLength())}
		}}, nil
	})
	library(strategies.Meta{
		Name: "lib-tollbooth", Doc: "didip/tollbooth: a bucket in memory, over golang.org/x/time/rate",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		Serves: single, Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		l := tollbooth.NewLimiter(perSecond(policy), nil)
		return booth{l.SetBurst(int(policy.Limit))}, nil
	})
	library(strategies.Meta{
		Name: "lib-jaeger", Doc: "uber/jaeger-client-go: utils.RateLimiter, a balance of credits in memory, one per subject",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return &perKey{make: func() bucket {
			return credits{jaeger.NewRateLimiter(perSecond(policy), float64(policy.Limit))}
		}}, nil
	})
	library(strategies.Meta{
		Name: "lib-beefsack", Doc: "beefsack/go-rate: the times of the last calls in memory, one list per subject",
		Kinds: []quota.Kind{quota.Rolling}, Guarantee: quota.PerInstance(quota.FaultClock),
		Serves: single, Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return &perKey{make: func() bucket { return times{beefsack.New(int(policy.Limit), policy.Window.RealLength())} }}, nil
	})
	library(strategies.Meta{
		Name: "lib-kevinms", Doc: "kevinms/leakybucket-go: its collector, buckets in memory that grant what is left",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return leaky{kevinms.NewCollector(perSecond(policy), policy.Limit, false)}, nil
	})
	library(strategies.Meta{
		Name: "lib-cockroach", Doc: "cockroachdb/tokenbucket: a bucket in memory, one per subject, each under a mutex as " +
			"it asks for",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		Serves: single, Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return &perKey{make: func() bucket {
			var b roach
			b.Init(tokenbucket.TokensPerSecond(perSecond(policy)), tokenbucket.Tokens(policy.Limit))
			return &b
		}}, nil
	})
	library(strategies.Meta{
		Name: "lib-slidingwindow", Doc: "RussellLuo/slidingwindow: two counted windows in memory, the one before weighed, " +
			"one per subject",
		Kinds: []quota.Kind{quota.Rolling}, Guarantee: []quota.Clause{weighted(), quota.MayReject(quota.FaultClock)},
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return &perKey{make: func() bucket {
			limiter, _ := slidingwindow.NewLimiter(policy.Window.RealLength(), policy.Limit,
				func() (slidingwindow.Window, slidingwindow.StopFunc) {
					return slidingwindow.NewLocalWindow()
				})
			return sliding{limiter}
		}}, nil
	})
	library(strategies.Meta{
		Name: "lib-clever-memory", Doc: "Clever/leakybucket: its store in memory, a counter per window, one per subject",
		Kinds: []quota.Kind{quota.FirstRequest}, Guarantee: quota.PerInstance(quota.FaultClock),
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return &perKey{make: func() bucket {
			b, _ := memory.New().Create("", uint(policy.Limit), policy.Window.RealLength()) // it returns no error
			return draining{b}
		}}, nil
	})
}

// twice is the promise of a counter per period: the limit at the end of one, and again
// at the beginning of the next.
func twice() quota.Clause {
	return quota.Clause{
		Property: quota.PropertyLeak, Formula: "L x (2 x instances - 1)", Tolerates: []quota.Fault{quota.FaultClock},
		Bound: func(params quota.Params) int64 { return (2*params.Instances - 1) * params.Limit },
	}
}

// ticked is the promise of buckets in memory that get a whole unit at every tick of a
// fixed rhythm, however short ago they were used up.
func ticked() []quota.Clause {
	return []quota.Clause{{
		Property: quota.PropertyLeak, Formula: "(L + 1) x instances", Tolerates: []quota.Fault{quota.FaultClock},
		Bound: func(params quota.Params) int64 { return (params.Instances-1)*params.Limit + params.Instances },
	}, quota.MayReject(quota.FaultClock)}
}

// bucket is a limiter of one subject.
type bucket interface{ allow(units int64) bool }

// perKey keeps a bucket for each subject, as the users of such libraries do.
type perKey struct {
	make    func() bucket
	buckets sync.Map
}

func (k *perKey) take(_ context.Context, key string, units int64) (int64, error) {
	value, ok := k.buckets.Load(key)
	if !ok {
		value, _ = k.buckets.LoadOrStore(key, k.make())
	}
	return all(value.(bucket).allow(units), units), nil
}

type xtime struct{ *rate.Limiter }

func (x xtime) allow(units int64) bool {
	return x.AllowN(time.Now(), int(units))
} //nolint:forbidigo // as its users call it

type juju struct{ *ratelimit.Bucket }

// allow takes units if all of them are there: TakeMaxDuration without a wait.
func (j juju) allow(units int64) bool {
	_, ok := j.TakeMaxDuration(units, 0)
	return ok
}

type failsafe struct{ ratelimiter.RateLimiter[any] }

func (f failsafe) allow(units int64) bool { return f.TryAcquirePermits(uint(units)) }

type booth struct{ *boothlimiter.Limiter }

func (b booth) take(_ context.Context, key string, units int64) (int64, error) {
	return all(!b.LimitReached(key), units), nil
}

type credits struct {
	*jaeger.ReconfigurableRateLimiter
}

func (c credits) allow(units int64) bool { return c.CheckCredit(float64(units)) }

type times struct{ *beefsack.RateLimiter }

func (t times) allow(int64) bool {
	ok, _ := t.Try()
	return ok
}

type leaky struct{ *kevinms.Collector }

func (l leaky) take(_ context.Context, key string, units int64) (int64, error) {
	return l.Add(key, units), nil
}

// roach is a bucket that leaves locking to its users.
type roach struct {
	mu sync.Mutex
	tokenbucket.TokenBucket
}

func (r *roach) allow(units int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok, _ := r.TryToFulfill(tokenbucket.Tokens(units))
	return ok
}

type sliding struct{ *slidingwindow.Limiter }

func (s sliding) allow(units int64) bool {
	return s.AllowN(time.Now(), units)
} //nolint:forbidigo // as its users call it

type draining struct{ clever.Bucket }

func (d draining) allow(units int64) bool {
	_, err := d.Add(uint(units))
	return err == nil
}
