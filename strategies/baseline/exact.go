package baseline

import (
	"context"
	"sync"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var exactMeta = strategies.Meta{
	Name:      "exact",
	About:     strategies.About{Core: true, Control: strategies.ControlExact},
	Kinds:     everyKind,
	GivesBack: true,
	Counts:    quota.CountsAdmitted,
	Guarantee: []quota.Clause{quota.Exactly(everyFault...), noFalseReject},
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return strategies.SharedValue(env.Shared, "baseline.exact", func() *exact {
			e := &exact{clock: env.Clock, accounts: map[family.Account]*subject{}}
			if env.TrueClock != nil {
				e.clock = env.TrueClock
			}
			return e
		}), nil
	},
}

// exact decides every request at one moment under one lock. All instances are the
// same value and go by true time: a control must not be wrong because a clock is.
type exact struct {
	clock quota.Clock
	// mu is never held across anything that waits, so a scheduler need not know.
	mu       sync.Mutex
	accounts map[family.Account]*subject
}

// Take implements [strategies.Strategy].
func (e *exact) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if err := ctx.Err(); err != nil {
		return quota.Decision{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	sub := e.subject(req.Subject, req.Policy)
	limit := sub.limitOr(req.Policy.Limit)
	span := req.Policy.Window.At(now)
	ledger := sub.open(span.Index)
	ledger.bringUp(req.Policy.Window, now)

	decision := quota.Decision{Tier: quota.TierProcess, Remaining: limit - ledger.used}
	if ledger.used+req.Units > limit {
		decision.Remaining = max(0, decision.Remaining)
		decision.RetryAfter = ledger.retryAfter(req.Policy.Window, span, now, ledger.used+req.Units-limit)
		return decision, nil
	}
	ledger.add(entry{id: req.ID, units: req.Units, at: now})
	if req.Settles && req.Life > 0 {
		ledger.holds = append(ledger.holds, ending{req.ID, now.Add(req.Life)})
	}
	return family.Admit(decision, req, span.Index), nil
}

// Refund implements [strategies.Refunder]. A second refund of the same request,
// or one of a window long gone, changes nothing.
func (e *exact) Refund(ctx context.Context, reservation quota.Reservation) error {
	return e.settle(ctx, reservation, 0)
}

// Commit implements [strategies.Committer]. Committing what has been refunded, or
// has left its window, changes nothing.
func (e *exact) Commit(ctx context.Context, reservation quota.Reservation, actual int64) error {
	return e.settle(ctx, reservation, actual)
}

// settle makes units the amount that a reservation holds.
func (e *exact) settle(ctx context.Context, reservation quota.Reservation, units int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if reservation.Request.Policy == nil {
		return family.ErrNoReservation
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	sub := e.subject(reservation.Request.Subject, reservation.Request.Policy)
	if ledger, ok := sub.windows[reservation.Window]; ok {
		now := e.clock.Now()
		ledger.bringUp(reservation.Request.Policy.Window, now)
		ledger.set(reservation.Request.ID, units)
	}
	return nil
}

// Used implements [strategies.Viewer].
func (e *exact) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	reading := quota.Reading{Tier: quota.TierProcess}
	if sub, ok := e.accounts[family.AccountOf(policy, subject)]; ok {
		if ledger, ok := sub.windows[policy.Window.At(now).Index]; ok {
			ledger.bringUp(policy.Window, now)
			reading.Units = ledger.used
			reading.Known = true
		}
	}
	return []quota.Reading{reading}, nil
}

// Provision implements [strategies.Provisioner].
func (e *exact) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	index := policy.Window.At(now).Index
	for _, grant := range grants {
		sub := &subject{limit: grant.Limit, limited: true}
		e.accounts[family.AccountOf(policy, grant.Subject)] = sub
		if grant.Used > 0 {
			ledger := sub.open(index)
			ledger.bringUp(policy.Window, now)
			ledger.add(entry{initial: true, units: grant.Used, at: now})
		}
	}
	return nil
}

// SetLimit implements [strategies.LimitSetter].
func (e *exact) SetLimit(ctx context.Context, policy *quota.Policy, subjects []quota.Subject) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, subject := range subjects {
		sub := e.subject(subject, policy)
		sub.limit = policy.Limit
		sub.limited = true
	}
	return nil
}

// Close implements [strategies.Strategy]. Other instances may still be open, so
// the counts stay.
func (e *exact) Close(context.Context) error { return nil }

func (e *exact) subject(s quota.Subject, policy *quota.Policy) *subject {
	k := family.AccountOf(policy, s)
	sub, ok := e.accounts[k]
	if !ok {
		sub = &subject{}
		e.accounts[k] = sub
	}
	return sub
}

// retryAfter is how long until `excess` units more are free; 0 if only a
// refund can free them.
func (l *ledger) retryAfter(window quota.Window, span quota.Span, now time.Time, excess int64) time.Duration {
	switch {
	case window.Kind.Tumbling():
		return span.End.Sub(now)
	case window.Kind == quota.Rolling:
		for _, entry := range l.entries {
			excess -= entry.units
			if excess <= 0 {
				return entry.at.Add(window.RealLength()).Sub(now)
			}
		}
	case window.Kind == quota.FirstRequest && !l.begun.IsZero():
		return l.begun.Add(window.RealLength()).Sub(now)
	case window.Kind == quota.Bucket:
		return l.pail.until(excess-l.used, now)
	}
	return 0
}
