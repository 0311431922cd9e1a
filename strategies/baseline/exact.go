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
	Core:      true,
	Kinds:     everyKind,
	GivesBack: true,
	Counts:    quota.CountsAdmitted,
	Control:   strategies.ControlExact,
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
	l := sub.open(span.Index)
	l.bringUp(req.Policy.Window, now)

	d := quota.Decision{Tier: quota.TierProcess, Remaining: limit - l.used}
	if l.used+req.Units > limit {
		d.Remaining = max(0, d.Remaining)
		d.RetryAfter = l.retryAfter(req.Policy.Window, span, now, l.used+req.Units-limit)
		return d, nil
	}
	l.add(entry{id: req.ID, units: req.Units, at: now})
	if req.Settles && req.Life > 0 {
		l.holds = append(l.holds, hold{req.ID, now.Add(req.Life)})
	}
	return family.Admit(d, req, span.Index), nil
}

// Refund implements [strategies.Refunder]. A second refund of the same request,
// or one of a window long gone, changes nothing.
func (e *exact) Refund(ctx context.Context, r quota.Reservation) error {
	return e.settle(ctx, r, 0)
}

// Commit implements [strategies.Committer]. Committing what has been refunded, or
// has left its window, changes nothing.
func (e *exact) Commit(ctx context.Context, r quota.Reservation, actual int64) error {
	return e.settle(ctx, r, actual)
}

// settle makes units the amount that a reservation holds.
func (e *exact) settle(ctx context.Context, r quota.Reservation, units int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.Request.Policy == nil {
		return family.ErrNoReservation
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	sub := e.subject(r.Request.Subject, r.Request.Policy)
	if l, ok := sub.windows[r.Window]; ok {
		now := e.clock.Now()
		l.bringUp(r.Request.Policy.Window, now)
		l.set(r.Request.ID, units)
	}
	return nil
}

// Used implements [strategies.Viewer].
func (e *exact) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	r := quota.Reading{Tier: quota.TierProcess}
	if sub, ok := e.accounts[family.AccountOf(p, s)]; ok {
		if l, ok := sub.windows[p.Window.At(now).Index]; ok {
			l.bringUp(p.Window, now)
			r.Units = l.used
			r.Known = true
		}
	}
	return []quota.Reading{r}, nil
}

// Provision implements [strategies.Provisioner].
func (e *exact) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	index := p.Window.At(now).Index
	for _, g := range grants {
		sub := &subject{limit: g.Limit, limited: true}
		e.accounts[family.AccountOf(p, g.Subject)] = sub
		if g.Used > 0 {
			l := sub.open(index)
			l.bringUp(p.Window, now)
			l.add(entry{initial: true, units: g.Used, at: now})
		}
	}
	return nil
}

// SetLimit implements [strategies.LimitSetter].
func (e *exact) SetLimit(ctx context.Context, p *quota.Policy, subjects []quota.Subject) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range subjects {
		sub := e.subject(s, p)
		sub.limit = p.Limit
		sub.limited = true
	}
	return nil
}

// Close implements [strategies.Strategy]. Other instances may still be open, so
// the counts stay.
func (e *exact) Close(context.Context) error { return nil }

func (e *exact) subject(s quota.Subject, p *quota.Policy) *subject {
	k := family.AccountOf(p, s)
	sub, ok := e.accounts[k]
	if !ok {
		sub = &subject{}
		e.accounts[k] = sub
	}
	return sub
}

// retryAfter is how long until `excess` units more are free; 0 if only a
// refund can free them.
func (l *ledger) retryAfter(w quota.Window, span quota.Span, now time.Time, excess int64) time.Duration {
	switch {
	case w.Kind.Tumbling():
		return span.End.Sub(now)
	case w.Kind == quota.Rolling:
		for _, x := range l.entries {
			if excess -= x.units; excess <= 0 {
				return x.at.Add(w.RealLength()).Sub(now)
			}
		}
	case w.Kind == quota.FirstRequest && !l.begun.IsZero():
		return l.begun.Add(w.RealLength()).Sub(now)
	case w.Kind == quota.Bucket:
		return l.pail.until(excess-l.used, now)
	}
	return 0
}
