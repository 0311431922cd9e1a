package strategytest

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// testLength is the length of windows that are not meant to end, and the time in which
// a bucket gets one unit.
const testLength = time.Hour

// wholeRate is the same for what takes rates in whole requests per minute alone.
const wholeRate = 20 * time.Second

// smallest and largest are limits that the suite sets.
const smallest, largest = 1, 16

// served returns a policy for each kind of window that the strategy serves with the limits of the suite:
// one of requests if it takes that, else the first of the records' policies that it
// takes, else one of those with its own window, or that of the stores.
func served(meta *strategies.Meta, stores Stores) []quota.Policy {
	var out []quota.Policy
	for _, kind := range meta.Kinds {
		window := quota.Window{Kind: kind}
		if kind.HasLength() {
			window.Length = testLength
		}
		if kind == quota.Bucket {
			window.Refill = 1
		}
		candidates := []quota.Policy{{Name: "conformance", Doc: "made for the test", Unit: "requests", Window: window}}
		for _, policy := range quota.Policies() {
			if policy.Window.Kind == kind {
				policy.Window = window
				candidates = append(candidates, policy)
			}
		}
		if kind.HasLength() {
			policy := candidates[0]
			policy.Window.Length = wholeRate
			candidates = append(candidates, policy)
		}
		for _, policy := range append(quota.Policies(), stores.Policy) {
			if policy.Window.Kind == kind && policy.Limit > 0 && lasts(&policy.Window) {
				candidates = append(candidates, policy)
			}
		}
		for _, policy := range candidates {
			small := policy
			large := policy
			small.Limit, large.Limit = smallest, largest
			if meta.ServesPolicy(&small) == nil && meta.ServesPolicy(&large) == nil {
				out = append(out, small)
				break
			}
		}
	}
	return out
}

// lasts reports whether a check is over before such a window ends, or before a unit flows in.
func lasts(window *quota.Window) bool {
	return (window.Length == 0 || window.Length/time.Duration(max(window.Refill, 1)) >= wholeRate) &&
		window.Timeline == (quota.Timeline{})
}

// representative is one policy of each sort of window. Under load the kinds of tumbling windows differ by name alone.
func representative(meta *strategies.Meta, stores Stores) []quota.Policy {
	var out []quota.Policy
	tumbling := false
	for _, policy := range served(meta, stores) {
		if policy.Window.Kind.Tumbling() {
			if tumbling {
				continue
			}
			tumbling = true
		}
		out = append(out, policy)
	}
	return out
}

// servedKind is the policy of one kind; ok is false if it is not served.
func servedKind(meta *strategies.Meta, stores Stores, want func(quota.Kind) bool) (policy quota.Policy, ok bool) {
	for _, p := range served(meta, stores) {
		if want(p.Window.Kind) {
			return p, true
		}
	}
	return quota.Policy{}, false
}

// anyKind is the first policy served. A strategy that serves none is skipped: the check of
// the Meta fails for it.
func anyKind(tb testing.TB, meta *strategies.Meta, stores Stores) quota.Policy {
	tb.Helper()
	policy, ok := servedKind(meta, stores, func(quota.Kind) bool { return true })
	if !ok {
		tb.Skip("serves no policy")
	}
	return policy
}

// standingFirst is a standing policy if one is served, which is what refunds
// are about, and any other if not.
func standingFirst(tb testing.TB, meta *strategies.Meta, stores Stores) quota.Policy {
	tb.Helper()
	if policy, ok := servedKind(meta, stores, func(k quota.Kind) bool { return k == quota.Standing }); ok {
		return policy
	}
	return anyKind(tb, meta, stores)
}

// withLimit returns the policy with that limit and with the present in the middle
// of a window, or early in one, so that no window ends during a test.
func withLimit(policy quota.Policy, limit int64) *quota.Policy {
	policy.Limit = limit
	if window := &policy.Window; window.Kind == quota.Fixed && window.Length < testLength {
		// They may end by the limiter's own clock: one begins, if little is left of it.
		if now := (clock.Wall{}).Now(); window.At(now).End.Sub(now) < window.Length/4 {
			wait(window.At(now).End.Sub(now))
		}
	} else if window.Kind != quota.Standing {
		// Noon and a half in the middle of a month. It is also the middle of the
		// windows by which a strategy may approximate a rolling one of an hour.
		window.Timeline = quota.Timeline{
			Real:   clock.Wall{}.Now(),
			Policy: time.Date(2031, time.March, 15, 12, 30, 0, 0, time.UTC),
		}
	}
	return &policy
}

// nextWindow moves the policy's anchor by one window. No clock is touched: those
// of the stores would not follow.
func nextWindow(policy *quota.Policy) *quota.Policy {
	next := *policy
	window := policy.Window
	now := clock.Wall{}.Now()
	span := window.Span(window.At(now).Index + 1)
	middle := span.Start.Add(span.End.Sub(span.Start) / 2)
	next.Window.Timeline = quota.Timeline{Real: now, Policy: window.Timeline.ToPolicy(middle)}
	return &next
}
