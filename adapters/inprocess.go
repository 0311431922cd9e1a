package adapters

import (
	"context"
	"sync"
	"time"

	"github.com/didip/tollbooth/v7"
	boothlimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/juju/ratelimit"
	"golang.org/x/time/rate"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	library(strategies.Meta{
		Name: "lib-x-time-rate", Doc: "golang.org/x/time/rate: a bucket in memory, one per subject",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: inMemory(), Foreign: true,
	}, func(_ strategies.Env, p *quota.Policy) (limiter, error) {
		return &perKey{make: func() bucket { return xtime{rate.NewLimiter(rate.Limit(perSecond(p)), int(p.Limit))} }}, nil
	})
	library(strategies.Meta{
		Name: "lib-juju-ratelimit", Doc: "juju/ratelimit: a bucket in memory that is filled in ticks, one per subject",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: ticked(), Foreign: true,
	}, func(_ strategies.Env, p *quota.Policy) (limiter, error) {
		each := p.Window.RealLength() / time.Duration(p.Window.Refill)
		return &perKey{make: func() bucket { return juju{ratelimit.NewBucket(each, p.Limit)} }}, nil
	})
	library(strategies.Meta{
		Name: "lib-failsafe-bursty", Doc: "failsafe-go: its bursty limiter, a counter per period, one per subject",
		Kinds: []quota.Kind{quota.Rolling}, Guarantee: []quota.Clause{twice()}, Foreign: true,
	}, func(_ strategies.Env, p *quota.Policy) (limiter, error) {
		return &perKey{make: func() bucket {
			return failsafe{ratelimiter.NewBursty[any](uint(p.Limit), p.Window.RealLength())}
		}}, nil
	})
	library(strategies.Meta{
		Name: "lib-tollbooth", Doc: "didip/tollbooth: a bucket in memory, over golang.org/x/time/rate",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: inMemory(), Serves: single, Foreign: true,
	}, func(_ strategies.Env, p *quota.Policy) (limiter, error) {
		l := tollbooth.NewLimiter(perSecond(p), nil)
		return booth{l.SetBurst(int(p.Limit))}, nil
	})
}

// twice is the promise of a counter per period: the limit at the end of one, and again
// at the beginning of the next.
func twice() quota.Clause {
	return quota.Clause{
		Property: quota.PropertyLeak, Formula: "L x (2 x instances - 1)", Tolerates: []quota.Fault{quota.FaultClock},
		Bound: func(p quota.Params) int64 { return (2*p.Instances - 1) * p.Limit },
	}
}

// ticked is the promise of buckets in memory that get a whole unit at every tick of a
// fixed rhythm, however short ago they were used up.
func ticked() []quota.Clause {
	return []quota.Clause{{
		Property: quota.PropertyLeak, Formula: "(L + 1) x instances", Tolerates: []quota.Fault{quota.FaultClock},
		Bound: func(p quota.Params) int64 { return (p.Instances-1)*p.Limit + p.Instances },
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
	b, ok := k.buckets.Load(key)
	if !ok {
		b, _ = k.buckets.LoadOrStore(key, k.make())
	}
	return all(b.(bucket).allow(units), units), nil
}

type xtime struct{ *rate.Limiter }

func (x xtime) allow(units int64) bool { return x.AllowN(time.Now(), int(units)) } //nolint:forbidigo // as its users call it

type juju struct{ *ratelimit.Bucket }

// allow takes units where all of them are there: TakeMaxDuration without a wait.
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
