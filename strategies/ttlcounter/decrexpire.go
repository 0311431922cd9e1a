package ttlcounter

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

var decrExpireMeta = strategies.Meta{
	Name:   "decr-expire",
	Source: "001 (ADR-009)",
	Doc:    "SET NX to the limit with an expiry, DECR, reject below zero; rejected attempts count",
	Form:   strategies.Documented,
	Needs:  []strategies.Need{strategies.NeedRedis},
	Kinds:  tumbling,
	Counts: quota.CountsAttempts,
	Guarantee: []quota.Clause{
		// As with incr-expire, a command that comes after its own window's key has
		// expired begins that window anew, so a clock that passes the end in between
		// is not tolerated. The same expiry between the two commands does the
		// opposite: the key is gone, DECR makes one at -1, and all is rejected.
		quota.Exactly(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultOutage),
		roomForSingleUnits,
	},
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &decrExpire{countdown{newCounter(env, "links")}}, nil
	},
}

// decrExpire is record 001 as its prose has it: the first access creates the
// count at its maximum, and only the caller that creates it sets the expiry. A caller
// cannot know that it is the first, so each one tries; the two commands are not
// atomic. A key that expires between them is made again by DECR, without a time
// to live: it rejects callers that still ask for that window, and nothing removes it.
type decrExpire struct{ countdown }

var (
	_ strategies.Viewer      = (*decrExpire)(nil)
	_ strategies.Provisioner = (*decrExpire)(nil)
)

// Take implements [strategies.Strategy].
func (s *decrExpire) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := s.clock.Now()
	span, key := s.current(req.Subject, req.Policy, now)

	if err := s.redis.SetNX(ctx, key, req.Policy.Limit, wholeSeconds(span, now)).Err(); err != nil {
		return failClosed(ctx, err)
	}
	left, err := s.decrement(ctx, key, req.Units)
	if err != nil {
		return failClosed(ctx, err)
	}
	return decide(left >= 0, left, span, now), nil
}

// Provision implements [strategies.Provisioner].
func (s *decrExpire) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	return s.provision(ctx, p, grants, func(pipe redis.Pipeliner, key string, used int64, span *quota.Span, now time.Time) {
		pipe.Set(ctx, key, p.Limit-used, wholeSeconds(span, now))
	})
}
