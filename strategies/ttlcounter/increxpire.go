package ttlcounter

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var incrExpireMeta = family.PerWindow(strategies.Meta{
	Name:    "incr-expire",
	About:   strategies.About{Core: true, Record: ofDesignRecord("ADR-008")},
	Counts:  quota.CountsAttempts,
	Options: []quota.Option{family.Down},
	Guarantee: []quota.Clause{
		// A clock that passes the window's end between the caller's look at it and
		// the INCR is not tolerated: the key may have expired by then, and the late
		// command starts the old window's count again.
		family.ExactlyUnlessOpen(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultOutage,
			quota.FaultLimit),
		family.RoomForSingleUnits,
	},
	Down: family.WhenDown,
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &incrExpire{newCounter(env, userLinks)}, nil
	},
})

// incrExpire is ADR-008 as it stands: two commands, so a caller that dies
// between them leaves a key that never expires.
type incrExpire struct{ counter }

// Take implements [strategies.Strategy].
func (s *incrExpire) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := s.clock.Now()
	span, key := s.current(req.Subject, req.Policy, now)

	n, err := family.Increment(ctx, s.redis, key, req.Units).Result()
	if err != nil {
		return s.unanswered(ctx, err)
	}
	if n == req.Units { // the key is new, so its expiry is ours to set
		if err := s.redis.Expire(ctx, key, wholeSeconds(span, now)).Err(); err != nil {
			return s.unanswered(ctx, err)
		}
	}
	return family.Decided(n <= req.Policy.Limit, req.Policy.Limit-n, span.End, now), nil
}

// Provision implements [strategies.Provisioner].
func (s *incrExpire) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	return s.provision(ctx, policy, grants,
		func(pipe redis.Pipeliner, key string, used int64, span *quota.Span, now time.Time) {
			pipe.Set(ctx, key, used, wholeSeconds(span, now))
		})
}

var takeScript = family.Script(files, "take.lua")

// What take.lua answers first, if it is not a plain rejection.
const (
	takeAdmitted int64 = 1
	takeLate     int64 = -1
)

// grace is how long a counter outlives its window, by Redis' clock. It leaves
// room for slow requests and for an application clock that is behind Redis'; more
// than that, and the request is told that it is late.
const grace = 5 * time.Second

var incrExpireAtomicMeta = family.PerWindow(strategies.Meta{
	Name:   "incr-expire-atomic",
	About:  strategies.About{Core: true, Record: ofDesignRecord("ADR-008")},
	Counts: quota.CountsAdmitted,
	Guarantee: []quota.Clause{
		quota.Exactly(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry,
			quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
		family.NoFalseReject(quota.FaultLimit),
	},
	Down: family.WhenDown,
	Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &incrExpireAtomic{newCounter(env, userLinks)}, family.Load(ctx, strategies.Redis(env), takeScript)
	},
})

// incrExpireAtomic is incr-expire in one script. The script is the only writer,
// and the key of a window is refused from the very moment that it expires on, by
// the same clock: however late a command comes, a window is never counted twice.
type incrExpireAtomic struct{ counter }

// Take implements [strategies.Strategy].
func (s *incrExpireAtomic) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	// A late request is asked once more, for the window that is current by then.
	for range 2 {
		now := s.clock.Now()
		span, key := s.current(req.Subject, req.Policy, now)
		res, err := family.Numbers(takeScript.Run(ctx, s.redis, []string{key}, req.Units, req.Policy.Limit,
			expiry(span).UnixMilli()), 2)
		if err != nil {
			return s.unanswered(ctx, err)
		}
		if res[0] == takeLate {
			continue
		}
		return family.Decided(res[0] == takeAdmitted, req.Policy.Limit-res[1], span.End, now), nil
	}
	// Our clock is behind Redis' by more than the grace, so Redis will not say.
	return quota.Decision{Tier: quota.TierProcess, Degraded: true, Remaining: -1}, nil
}

// Provision implements [strategies.Provisioner].
func (s *incrExpireAtomic) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	return s.provision(ctx, policy, grants,
		func(pipe redis.Pipeliner, key string, used int64, span *quota.Span, _ time.Time) {
			pipe.Set(ctx, key, used, 0)
			pipe.PExpireAt(ctx, key, expiry(span))
		})
}

// expiry is when a window's counter goes.
func expiry(span *quota.Span) time.Time { return span.End.Add(grace) }
