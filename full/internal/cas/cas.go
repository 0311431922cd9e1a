// Package cas is the part of a strategy that counts in a store by compare-and-swap.
package cas

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Version is a counter as it was read.
type Version struct {
	Units int64
	// Number changes with each write, as the store counts them.
	Number int64
	Known  bool // or there is no counter
}

// Store has the counters.
type Store interface {
	// Key is the name of a subject's counter in one window.
	Key(subject quota.Subject, policy *quota.Policy, window int64) string
	// Prepare comes before a change.
	Prepare(ctx context.Context) error
	Read(ctx context.Context, key string) (Version, error)
	// Swap writes units if the counter of the span is at the version that was read,
	// and otherwise returns the version that it is at.
	Swap(ctx context.Context, key string, span quota.Span, at Version, units int64) (now Version, done bool, err error)
}

// Counter is one instance of a strategy, but for what sets counters up.
type Counter struct {
	Store Store
	Clock quota.Clock
	Tier  quota.Tier
	// Writes is what the store calls them.
	Writes string
	// retries are writes that found another version than the one read.
	retries, successes strategies.Tally
}

var (
	_ strategies.Refunder = (*Counter)(nil)
	_ strategies.Viewer   = (*Counter)(nil)
	_ strategies.Meter    = (*Counter)(nil)
)

// Take implements [strategies.Strategy].
func (c *Counter) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := c.Clock.Now()
	span := req.Policy.Window.At(now)
	decision := quota.Decision{Tier: c.Tier}
	left, err := c.change(ctx, c.Store.Key(req.Subject, req.Policy, span.Index), span, func(used int64) (int64, bool) {
		return used + req.Units, req.Units <= req.Policy.Limit-used
	})
	if err != nil {
		return quota.Decision{}, fmt.Errorf("charging %s: %w", req.Subject, err)
	}
	decision.Remaining = max(req.Policy.Limit-left.units, 0)
	if left.changed {
		decision.Admitted = true
		decision.Reservation = quota.Reservation{Request: req, Window: span.Index}
	} else if req.Policy.Window.Kind.Tumbling() {
		decision.RetryAfter = span.End.Sub(now)
	}
	return decision, nil
}

// Refund subtracts the reserved units from the window that was charged. It
// remembers nothing: a reservation that is refunded twice gives its units back
// twice.
func (c *Counter) Refund(ctx context.Context, reservation quota.Reservation) error {
	req := reservation.Request
	if req.Policy == nil {
		return errors.New("refund of a reservation that no admitted request made")
	}
	span := req.Policy.Window.Span(reservation.Window)
	_, err := c.change(ctx, c.Store.Key(req.Subject, req.Policy, reservation.Window), span,
		func(used int64) (int64, bool) {
			return max(used-req.Units, 0), used > 0
		})
	return format.Wrapf(err, "refunding %s", req.Subject)
}

// outcome is a counter at the end of a change. changed is false if the change
// was turned down.
type outcome struct {
	units   int64
	changed bool
}

// change applies f to a counter, again and again until no other caller comes in
// between, or until f turns the value down.
func (c *Counter) change(ctx context.Context, key string, span quota.Span,
	f func(used int64) (units int64, ok bool)) (outcome, error) {
	if err := c.Store.Prepare(ctx); err != nil {
		return outcome{}, err
	}
	at, err := c.Store.Read(ctx, key)
	if err != nil {
		return outcome{}, err
	}
	for {
		units, ok := f(at.Units)
		if !ok {
			return outcome{at.Units, false}, nil
		}
		now, done, err := c.Store.Swap(ctx, key, span, at, units)
		switch {
		case err != nil:
			return outcome{}, err
		case done:
			c.successes.Add(1)
			return outcome{units, true}, nil
		}
		at = now
		c.retries.Add(1)
	}
}

// Used implements [strategies.Viewer].
func (c *Counter) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	at, err := c.Store.Read(ctx, c.Store.Key(subject, policy, policy.Window.At(c.Clock.Now()).Index))
	if err != nil {
		return nil, fmt.Errorf("reading what %s has used: %w", subject, err)
	}
	return []quota.Reading{{Tier: c.Tier, Units: at.Units, Known: at.Known}}, nil
}

// Measures implements [strategies.Meter].
func (c *Counter) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "retries", Unit: c.Writes, Value: c.retries.Load()},
		{Name: "successes", Unit: c.Writes, Value: c.successes.Load()},
	}
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (c *Counter) Close(context.Context) error { return nil }
