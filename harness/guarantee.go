package harness

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Clauses holds a strategy to clauses, its own or its record's, with parameters that were
// measured. A clause that does not tolerate each of the faults that happened is
// left out: it promises nothing then. v is the verdict on the policy's own
// windows, rolling that on rolling ones of the same length, or nil.
func Clauses(declared []quota.Clause, kind quota.Kind, happened []quota.Fault, params quota.Params, v, rolling *oracle.Verdict) []results.Clause {
	out := []results.Clause{}
	for _, c := range declared {
		if slices.ContainsFunc(happened, func(f quota.Fault) bool { return !slices.Contains(c.Tolerates, f) }) {
			continue
		}
		switch {
		case c.Applies(kind):
			out = append(out, decide(c, params, v))
		case rolling != nil && slices.Contains(c.Kinds, quota.Rolling):
			out = append(out, decide(c, params, rolling))
		}
	}
	return out
}

// notPromised are the faults that happened and under which no clause bounds the leak.
func notPromised(declared []quota.Clause, kind quota.Kind, happened []quota.Fault) (out []string) {
	leak := slices.DeleteFunc(slices.Clone(declared), func(c quota.Clause) bool { return c.Property != quota.PropertyLeak || !c.Applies(kind) })
	if len(leak) == 0 {
		return nil
	}
	for _, f := range happened {
		tolerated := slices.ContainsFunc(leak, func(c quota.Clause) bool { return slices.Contains(c.Tolerates, f) })
		if !tolerated && !slices.Contains(out, string(f)) {
			out = append(out, string(f))
		}
	}
	return out
}

// decide evaluates a clause. Where its bound is all that is asked for, it bounds
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
	return quota.Params{Limit: policy.Limit, MaxCost: v.MaxCost, InFlight: v.MaxInFlight, Offered: v.MaxOffered, Policy: policy}
}

// guarantee judges the clauses by the clocks that instances have: a clock that is
// ahead makes deadlines pass early, and only who tolerates that is judged.
func (j *judgement) guarantee(own, rolling *oracle.Verdict) {
	j.run.Guarantee = []results.Clause{}
	if j.StoresApart {
		if len(j.Selection.Guarantee) > 0 {
			j.note("guarantee-not-judged", "what it declares is about one store, and here each region counts in its own")
		}
		if slices.ContainsFunc(j.Selection.Guarantee, func(c quota.Clause) bool { return c.Property == quota.PropertyLeak }) {
			j.run.NotPromised = []string{results.SeveralRegions}
		}
		return
	}
	if j.Selection.Control == strategies.ControlExact { // it goes by one clock, whatever its instances' clocks show
		own = j.verdict
	}
	var happened []quota.Fault
	for _, o := range j.Plan.Outages {
		happened = append(happened, o.Faults()...)
	}
	if len(j.LimitChanges) > 0 {
		happened = append(happened, quota.FaultLimit)
	}
	params := Params(j.Policy, j.verdict)
	for _, c := range j.LimitChanges {
		params.Limit = max(params.Limit, c.Limit)
	}
	params.Instances, params.SyncPeriod, params.Skew = int64(j.Instances), j.SyncPeriod, j.skew()
	params.Options = j.Selection.Options
	if params.Skew > 0 {
		happened = append(happened, quota.FaultClock)
	}
	judged := func(declared []quota.Clause) []results.Clause {
		return j.noticed(happened, func(happened []quota.Fault) []results.Clause {
			return Clauses(declared, j.Policy.Window.Kind, happened, params, own, rolling)
		})
	}
	j.run.Guarantee, j.run.Record = judged(j.Selection.Guarantee), judged(j.Selection.Record)
	j.run.NotPromised = notPromised(j.Selection.Guarantee, j.Policy.Window.Kind, happened)
	for _, n := range j.Noticed {
		if n.Code != "" {
			j.strike(n.Code, "%s", n.Detail)
		}
	}
}

// RollingWindow is the rolling window of the same length as the tumbling window w
// has at the moment at.
func RollingWindow(w quota.Window, at time.Time) quota.Window {
	span := w.At(at)
	return quota.Window{Kind: quota.Rolling, Length: span.End.Sub(span.Start)}
}

// ByOwnClocks shifts events, in place, to the moments that the clocks of their
// instances showed. skews says how far each instance's clock was ahead; missing
// ones are 0.
func ByOwnClocks(events []oracle.Event, skews []time.Duration) {
	for i := range events {
		e := &events[i]
		if int(e.Instance) >= len(skews) {
			continue
		}
		by := int64(skews[e.Instance])
		e.Call, e.Reply = e.Call+by, e.Reply+by
		if e.Kind != oracle.Take {
			e.TakeCall, e.TakeReply = e.TakeCall+by, e.TakeReply+by
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
			lo, hi = s, s
		}
		lo, hi = min(lo, s), max(hi, s)
	}
	return hi - lo
}
