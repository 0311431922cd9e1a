package harness

import (
	"github.com/quotabench/quotabench/harness/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// evaluate holds a strategy to its declared clauses, each with the parameters
// measured in the run.
func evaluate(m *strategies.Meta, p *quota.Policy, instances int, v *oracle.Verdict) []results.Clause {
	params := strategies.Params{
		Limit: p.Limit, MaxCost: v.MaxCost, InFlight: v.MaxInFlight, Instances: int64(instances), Offered: v.MaxOffered,
	}
	out := []results.Clause{}
	for _, c := range m.Guarantee {
		if !c.Applies(p.Window.Kind) {
			continue
		}
		r := results.Clause{Property: string(c.Property), Formula: c.Formula, Bound: c.Bound(params)}
		exercised := false
		switch c.Property {
		case strategies.PropertyLeak:
			r.Certain, r.Possible = v.LeakWorst, v.LeakPossibleWorst
			exercised = v.Crossings > 0
		case strategies.PropertyFalseReject:
			r.Certain, r.Possible = v.FalseRejectWorst, v.FalseRejectPossibleWorst
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
		out = append(out, r)
	}
	return out
}
