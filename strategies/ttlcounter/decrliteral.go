package ttlcounter

import (
	"context"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var decrLiteralMeta = family.PerWindow(strategies.Meta{
	Name:   "decr-literal",
	Counts: quota.CountsAttempts,
	Record: ofRecord("ADR-009"),
	// Nothing is promised about rejections: the count starts at 0 and not at the
	// limit, so every request may meet one.
	Guarantee: []quota.Clause{
		quota.Exactly(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry,
			quota.FaultClock, quota.FaultEviction, quota.FaultOutage),
	},
	Down: family.WhenDown,
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &decrLiteral{countdown{newCounter(env, linkHits), true}}, nil
	},
})

// decrLiteral is ADR-009's pseudo-code and nothing else. DECR on a missing key
// gives -1, so the first request is rejected, the result that would set the
// expiry never comes up, and the key stays forever.
//
// It is no Provisioner: whatever initialised the count would be the very step
// that the pseudo-code leaves out.
type decrLiteral struct{ countdown }

// Take implements [strategies.Strategy].
func (s *decrLiteral) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := s.clock.Now()
	span, key := s.current(req.Subject, req.Policy, now)
	return s.count(ctx, req, key, span, now)
}
