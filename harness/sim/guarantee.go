package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// rolling judges a run across a boundary once more, as if its windows were
// rolling ones, and holds the strategy to what it declares of either.
func (p *pass) rolling(cfg oracle.Config, events []oracle.Event, v *oracle.Verdict) {
	var other *oracle.Verdict
	if p.cfg.Workload.Boundary && p.policy.Window.Kind.Tumbling() {
		span := p.policy.Window.At(cfg.Epoch)
		cfg.Window = quota.Window{Kind: quota.Rolling, Length: span.End.Sub(span.Start)}
		o := oracle.Judge(cfg, events)
		other = &o
		worst := min(p.policy.Limit, o.Admitted.Units)
		if o.LeakWorst > 0 {
			worst = p.policy.Limit + o.LeakWorst
		}
		p.run.Rolling = &results.Rolling{
			WorstUnits: worst, Multiple: float64(worst) / float64(p.policy.Limit), Units: o.LeakUnits, Possible: o.LeakPossible,
		}
	}
	params := quota.Params{
		Limit: p.policy.Limit, MaxCost: v.MaxCost, InFlight: v.MaxInFlight, Instances: int64(p.cfg.Topology.total()),
		Offered: v.MaxOffered, SyncPeriod: p.syncPeriod(), Skew: p.cfg.Topology.maxSkew(),
		Policy: &p.policy, Options: p.sel.Options,
	}
	if params.Skew > 0 {
		own := p.ownClocks(cfg, events)
		v = &own
		p.run.Audit.Strike("clocks-differ", results.StrikesNote, fmt.Sprintf(
			"instances' clocks differ by up to %v: by their own clocks, %d units leaked and %d requests were rejected wrongly",
			params.Skew, own.LeakUnits, own.FalseRejects))
	}
	if t := &p.cfg.Topology; len(t.Regions) > 1 && !t.SharedRedis && p.sel.NeedsStore(strategies.NeedRedis) {
		if len(p.sel.Guarantee) > 0 {
			p.run.Audit.Strike("guarantee-not-judged", results.StrikesNote,
				"what it declares is about one Redis, and here each region counts in its own")
		}
		return
	}
	for _, c := range p.sel.Guarantee {
		if len(p.cfg.Outages) > 0 && !slices.Contains(c.Tolerates, quota.FaultOutage) {
			continue // a store was taken away, and the clause promises nothing then
		}
		// A clock that is ahead makes deadlines pass early. Whoever tolerates that is
		// judged by the clocks that its instances have.
		if params.Skew > 0 && !slices.Contains(c.Tolerates, quota.FaultClock) {
			continue
		}
		switch {
		case c.Applies(p.policy.Window.Kind):
			p.run.Guarantee = append(p.run.Guarantee, p.clause(c, params, v))
		case other != nil && slices.Contains(c.Kinds, quota.Rolling):
			p.run.Guarantee = append(p.run.Guarantee, p.clause(c, params, other))
		}
	}
}

// ownClocks judges the run with every request at the moment that its instance's
// clock showed, which decides what window it belongs to for the strategy.
func (p *pass) ownClocks(cfg oracle.Config, events []oracle.Event) oracle.Verdict {
	cfg.Window = p.policy.Window
	shifted := slices.Clone(events)
	for i := range shifted {
		e := &shifted[i]
		skew := int64(p.cfg.Topology.skew(int(e.Instance)))
		e.Call += skew
		e.Reply += skew
	}
	return oracle.Judge(cfg, shifted)
}

func (p *pass) clause(c quota.Clause, params quota.Params, v *oracle.Verdict) results.Clause {
	r := results.Clause{Property: string(c.Property), Formula: c.Formula, Bound: c.Bound(params)}
	var exercised bool
	r.Certain, r.Possible, exercised = v.Broken(c.Property)
	r.Decide(exercised)
	return r
}

// syncPeriod is the longest period of a job.
func (p *pass) syncPeriod() (d time.Duration) {
	for _, in := range p.st.instances {
		if j, ok := in.(strategies.Jobber); ok {
			for _, job := range j.Jobs() {
				d = max(d, job.Every)
			}
		}
	}
	return d
}
