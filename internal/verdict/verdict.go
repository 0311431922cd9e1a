// Package verdict checks what a strategy declares against what happened.
package verdict

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Verdicts are what a clause is checked against: the verdict on the policy's own windows by the
// clocks of the instances and by that of the stores, and that on rolling ones of the same length, or nil.
type Verdicts struct{ Own, Stores, Rolling *oracle.Verdict }

// Clauses holds a strategy to clauses, its own or its record's, with parameters that were
// measured. A clause that does not tolerate each of the faults that happened is
// left out: it promises nothing then.
func Clauses(declared []quota.Clause, kind quota.Kind, happened []quota.Fault, params quota.Params, v Verdicts) []results.Clause {
	out := []results.Clause{}
	for _, c := range declared {
		if slices.ContainsFunc(happened, func(f quota.Fault) bool { return !slices.Contains(c.Tolerates, f) }) {
			continue
		}
		switch {
		case c.Applies(kind) && c.ByStore():
			out = append(out, decide(c, params, v.Stores))
		case c.Applies(kind):
			out = append(out, decide(c, params, v.Own))
		case v.Rolling != nil && slices.Contains(c.Kinds, quota.Rolling):
			out = append(out, decide(c, params, v.Rolling))
		}
	}
	return out
}

// decide evaluates a clause. If its bound is all that is asked for, it bounds
// nothing, and the record says so.
func decide(c quota.Clause, params quota.Params, v *oracle.Verdict) results.Clause {
	endless := params
	endless.Offered = quota.Unbounded
	r := results.Clause{Property: string(c.Property), Formula: c.Formula, Source: c.Source, Bound: quota.Unbounded}
	for _, f := range c.Tolerates {
		r.Tolerates = append(r.Tolerates, string(f))
	}
	if c.Bound(endless) != quota.Unbounded {
		r.Bound = c.Bound(params)
	}
	var exercised bool
	r.Certain, r.Possible, exercised = v.Broken(c.Property)
	r.Decide(exercised)
	return r
}

// Params are what clauses are evaluated with, as far as a verdict tells.
func Params(policy *quota.Policy, v *oracle.Verdict) quota.Params {
	return quota.Params{
		Limit: policy.Limit, MaxCost: v.MaxCost, InFlight: v.MaxInFlight, Offered: v.MaxOffered, Unsynced: v.MaxSpan, Policy: policy,
	}
}

// RollingWindow is the rolling window of the same length as the tumbling window w
// has at the moment at.
func RollingWindow(w quota.Window, at time.Time) quota.Window {
	span := w.At(at)
	return quota.Window{Kind: quota.Rolling, Length: span.End.Sub(span.Start)}
}

// Length is how long the policy's window is that a moment lies in, or the time in which its bucket fills; 0 for a standing policy.
func Length(p *quota.Policy, at time.Time) time.Duration {
	switch w := p.Window; {
	case w.Kind == quota.Bucket:
		return time.Duration(w.Flow().Until(quota.Level{Units: p.Limit}))
	case w.Kind.Tumbling():
		return RollingWindow(w, at).Length
	default:
		return w.RealLength()
	}
}

// ByOwnClocks shifts events, in place, to the moments that the clocks of their
// instances showed. skews says how far each instance's clock was ahead; missing
// ones are 0. from says since when, in nanoseconds since the epoch; nil is always. What
// happened while a clock stepped may belong to either side of that.
func ByOwnClocks(events []oracle.Event, skews []time.Duration, from []int64) {
	for i := range events {
		e := &events[i]
		if int(e.Instance) >= len(skews) {
			continue
		}
		by := func(at int64) int64 {
			if from != nil && at < from[e.Instance] {
				return 0
			}
			return int64(skews[e.Instance])
		}
		a := by(e.Call)
		b := by(e.Reply)
		e.Call = e.Call + min(a, b)
		e.Reply = e.Reply + max(a, b)
		if e.Kind != oracle.Take {
			a = by(e.TakeCall)
			b = by(e.TakeReply)
			e.TakeCall = e.TakeCall + min(a, b)
			e.TakeReply = e.TakeReply + max(a, b)
		}
	}
}

// MaxSkew is the largest difference between the clocks of two instances. skews
// says how far each one is ahead; missing ones are 0.
func MaxSkew(skews []time.Duration, instances int) time.Duration {
	var lo, hi time.Duration
	for i := range instances {
		var s time.Duration
		if i < len(skews) {
			s = skews[i]
		}
		if i == 0 {
			lo = s
			hi = s
		}
		lo = min(lo, s)
		hi = max(hi, s)
	}
	return hi - lo
}
