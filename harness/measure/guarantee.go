package measure

import (
	"slices"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// guarantee holds the strategy to its declared clauses, each with the parameters
// measured in the run. rolling is the verdict on the same history with rolling
// windows, or nil.
func (p *pass) guarantee(v, rolling *oracle.Verdict) []results.Clause {
	params := quota.Params{
		Limit: p.policy.Limit, MaxCost: v.MaxCost, InFlight: v.MaxInFlight, Instances: int64(p.m.cfg.Instances),
		Offered: v.MaxOffered, SyncPeriod: p.s.jobs.achievedPeriod(),
		Policy: p.policy, Options: p.s.sel.Options,
	}
	kind := p.policy.Window.Kind
	out := []results.Clause{}
	for _, c := range p.s.sel.Guarantee {
		if len(p.s.outages) > 0 && !slices.Contains(c.Tolerates, quota.FaultOutage) {
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

func evaluate(c quota.Clause, params quota.Params, v *oracle.Verdict) results.Clause {
	r := results.Clause{Property: string(c.Property), Formula: c.Formula, Bound: c.Bound(params)}
	var exercised bool
	r.Certain, r.Possible, exercised = v.Broken(c.Property)
	r.Decide(exercised)
	return r
}
