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
	Core:    true,
	Counts:  quota.CountsAttempts,
	Record:  ofRecord("ADR-008"),
	Options: []quota.Option{family.Down},
	Guarantee: []quota.Clause{
		// A clock that passes the window's end between the caller's look at it and
		// the INCR is not tolerated: the key may have expired by then, and the late
		// command starts the old window's count again.
		family.ExactlyUnlessOpen(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultOutage, quota.FaultLimit),
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
func (s *incrExpire) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	return s.provision(ctx, p, grants, func(pipe redis.Pipeliner, key string, used int64, span *quota.Span, now time.Time) {
		pipe.Set(ctx, key, used, wholeSeconds(span, now))
	})
}
