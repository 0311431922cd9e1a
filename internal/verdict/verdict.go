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
func Clauses(declared []quota.Clause, kind quota.Kind, happened []quota.Fault, params quota.Params,
	verdicts Verdicts) []results.Clause {
	out := []results.Clause{}
	for _, clause := range declared {
		if slices.ContainsFunc(happened, func(fault quota.Fault) bool { return !slices.Contains(clause.Tolerates, fault) }) {
			continue
		}
		switch {
		case clause.Applies(kind) && clause.ByStore():
			out = append(out, decide(clause, params, verdicts.Stores))
		case clause.Applies(kind):
			out = append(out, decide(clause, params, verdicts.Own))
		case verdicts.Rolling != nil && slices.Contains(clause.Kinds, quota.Rolling):
			out = append(out, decide(clause, params, verdicts.Rolling))
		}
	}
	return out
}

// decide evaluates a clause. If its bound is all that is asked for, it bounds
// nothing, and the record says so.
func decide(clause quota.Clause, params quota.Params, verdict *oracle.Verdict) results.Clause {
	endless := params
	endless.Offered = quota.Unbounded
	r := results.Clause{
		Property: string(clause.Property), Formula: clause.AtMost(), Condition: clause.Condition,
		Source: clause.Source, Says: clause.Says, Bound: quota.Unbounded,
	}
	for _, fault := range clause.Tolerates {
		r.Tolerates = append(r.Tolerates, string(fault))
	}
	if clause.Bound(endless) != quota.Unbounded {
		r.Bound = clause.Bound(params)
	}
	var exercised bool
	r.Certain, r.Possible, exercised = verdict.Broken(clause.Property)
	r.Decide(exercised)
	return r
}

// Params are what clauses are evaluated with, as far as a verdict tells.
func Params(policy *quota.Policy, verdict *oracle.Verdict) quota.Params {
	return quota.Params{
		Limit: policy.Limit, MaxCost: verdict.MaxCost, Deciding: verdict.MaxDeciding, InFlight: verdict.MaxInFlight,
		Offered: verdict.MaxOffered, Unsynced: verdict.MaxSpan, Policy: policy,
	}
}

// RollingWindow is the rolling window of the same length as the tumbling window window
// has at the moment at.
func RollingWindow(window quota.Window, at time.Time) quota.Window {
	span := window.At(at)
	return quota.Window{Kind: quota.Rolling, Length: span.End.Sub(span.Start)}
}

// Length is how long the policy's window is that a moment lies in, or the time in which its bucket fills; 0 for a
// standing policy.
func Length(policy *quota.Policy, at time.Time) time.Duration {
	switch window := policy.Window; {
	case window.Kind == quota.Bucket:
		return time.Duration(window.Flow().Until(quota.Level{Units: policy.Limit}))
	case window.Kind.Tumbling():
		return RollingWindow(window, at).Length
	default:
		return window.RealLength()
	}
}

// ByOwnClocks shifts events, in place, to the moments that the clocks of their
// instances showed. skews says how far each instance's clock was ahead; missing
// ones are 0. from says since when, in nanoseconds since the epoch; nil is always. What
// happened while a clock stepped may belong to either side of that.
func ByOwnClocks(events []oracle.Event, skews []time.Duration, from []int64) {
	for i := range events {
		event := &events[i]
		if int(event.Instance) >= len(skews) {
			continue
		}
		by := func(at int64) int64 {
			if from != nil && at < from[event.Instance] {
				return 0
			}
			return int64(skews[event.Instance])
		}
		a := by(event.Call)
		b := by(event.Reply)
		event.Call = event.Call + min(a, b)
		event.Reply = event.Reply + max(a, b)
		if event.Kind != oracle.Take {
			a = by(event.TakeCall)
			b = by(event.TakeReply)
			event.TakeCall = event.TakeCall + min(a, b)
			event.TakeReply = event.TakeReply + max(a, b)
		}
	}
}

// MaxSkew is the largest difference between the clocks of two instances. skews
// says how far each one is ahead; missing ones are 0.
func MaxSkew(skews []time.Duration, instances int) time.Duration {
	var duration, hi time.Duration
	for i := range instances {
		var s time.Duration
		if i < len(skews) {
			s = skews[i]
		}
		if i == 0 {
			duration = s
			hi = s
		}
		duration = min(duration, s)
		hi = max(hi, s)
	}
	return hi - duration
}
