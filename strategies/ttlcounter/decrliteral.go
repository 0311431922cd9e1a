package ttlcounter

import (
	"context"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

var decrLiteralMeta = strategies.Meta{
	Name:   "decr-literal",
	Source: "001 (ADR-009)",
	Doc:    "DECR a count of remaining units that nothing ever sets to the maximum, reject below zero",
	Form:   strategies.Documented,
	Needs:  []strategies.Need{strategies.NeedRedis},
	Kinds:  tumbling,
	Counts: strategies.CountsAttempts,
	Guarantee: []strategies.Clause{
		strategies.Exactly(strategies.FaultCrash, strategies.FaultLostReply, strategies.FaultRetry,
			strategies.FaultClock, strategies.FaultEviction, strategies.FaultOutage),
		{
			Property: strategies.PropertyFalseReject,
			Formula:  "all that was asked: the count starts at 0 and not at the limit",
			Bound:    func(p strategies.Params) int64 { return p.Offered },
		},
	},
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &decrLiteral{newCounter(env, "links")}, nil
	},
}

// decrLiteral is record 001's pseudo-code and nothing else. DECR on a missing key
// gives -1, so the first request is rejected, the result that would set the
// expiry never comes up, and the key stays for ever.
//
// It is no Provisioner: whatever initialised the count would be the very step
// that the pseudo-code leaves out.
type decrLiteral struct{ counter }

var _ strategies.Viewer = (*decrLiteral)(nil)

// Take implements [strategies.Strategy].
func (s *decrLiteral) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := s.clock.Now()
	span := req.Policy.Window.At(now)
	key := s.key(req.Subject, req.Policy, span.Index)

	left, err := s.decrement(ctx, key, req.Units)
	if err != nil {
		return failClosed(ctx, err)
	}
	if left == req.Policy.Limit-req.Units {
		if err := s.redis.Expire(ctx, key, wholeSeconds(span, now)).Err(); err != nil {
			return failClosed(ctx, err)
		}
	}
	return decide(left >= 0, left, span, now), nil
}

func (s *decrLiteral) decrement(ctx context.Context, key string, units int64) (int64, error) {
	if units == 1 {
		return s.redis.Decr(ctx, key).Result()
	}
	return s.redis.DecrBy(ctx, key, units).Result()
}

// Used implements [strategies.Viewer]: the stored value is what is left of the
// limit.
func (s *decrLiteral) Used(ctx context.Context, subject quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	left, known, err := s.value(ctx, subject, p)
	if err != nil {
		return nil, err
	}
	r := quota.Reading{Tier: quota.TierRedis, Known: known}
	if known {
		r.Units = p.Limit - left
	}
	return []quota.Reading{r}, nil
}
