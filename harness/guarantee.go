package harness

import (
	"slices"

	"github.com/quotabench/quotabench/harness/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// guarantee holds the strategy to its declared clauses, each with the parameters
// measured in the run. rolling is the verdict on the same history with rolling
// windows, or nil.
func (p *pass) guarantee(v, rolling *oracle.Verdict) []results.Clause {
	params := strategies.Params{
		Limit: p.policy.Limit, MaxCost: v.MaxCost, InFlight: v.MaxInFlight, Instances: int64(p.m.cfg.Instances),
		Offered: v.MaxOffered, SyncPeriod: p.s.jobs.achievedPeriod(),
	}
	kind := p.policy.Window.Kind
	out := []results.Clause{}
	for _, c := range p.s.sel.Guarantee {
		if len(p.s.outages) > 0 && !slices.Contains(c.Tolerates, strategies.FaultOutage) {
			continue // a store was taken away, and the clause promises nothing then
		}
		switch {
		case c.Applies(kind):
			out = append(out, evaluate(c, params, v))
		case rolling != nil && slices.Contains(c.Kinds, quota.Rolling):
			out = append(out, evaluate(c, params, rolling))
		}
	}
	return out
}

func evaluate(c strategies.Clause, params strategies.Params, v *oracle.Verdict) results.Clause {
	r := results.Clause{Property: string(c.Property), Formula: c.Formula, Bound: c.Bound(params)}
	exercised := false
	switch c.Property {
	case strategies.PropertyLeak:
		r.Certain, r.Possible = v.LeakWorst, v.LeakPossibleWorst
		exercised = v.Crossings > 0
	case strategies.PropertyFalseReject:
		r.Certain, r.Possible = v.FalseRejectWorst, v.FalseRejectPossibleWorst
		if explained(v) {
			r.Possible = r.Certain
		}
		exercised = v.Issued.Requests > v.Failed.Requests
	}
	switch {
	case r.Certain > r.Bound:
		r.Verdict = results.Violated
	case !exercised:
		r.Verdict = results.NotExercised
	case r.Possible <= r.Bound:
		r.Verdict = results.Kept
	default:
		r.Verdict = results.Undecided
	}
	return r
}

// explained reports whether some order of the operations, in keeping with what
// every caller saw, has no rejection that was wrong. One by one, a rejection that
// overlaps with admissions can always be moved to before them, so that false
// rejects stay possible however well a strategy works. Taken together, they are
// decided where every request is for one unit and none is given back: put every
// admission at its call and every rejection at its reply. If no rejection is
// certainly wrong, each then finds the limit used up.
func explained(v *oracle.Verdict) bool {
	if v.MaxCost > 1 || v.FalseRejects > 0 || v.Failed.Requests > 0 {
		return false
	}
	return !slices.ContainsFunc(v.Windows, func(w oracle.WindowVerdict) bool { return w.Crossed || w.GaveBack })
}
