package measure

import (
	"context"
	"slices"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/guard"
)

// costs are per decision: what went over the connections in the pass, by the
// number of decisions.
func (p *pass) costs() {
	p.run.Meter = harness.MeterSince(p.meter, p.s.Meter()) // before the probe adds to it
	c := &p.run.Cost
	counts := &p.d.counts
	if n := float64(counts.Admitted + counts.Rejected + counts.Errors.Total()); n > 0 {
		c.ProbeCost = p.traffic.cost(n)
		c.ClientCPU = float64(p.own.used) / n
		c.RunQueue = float64(p.own.waiting) / n
		for _, st := range p.s.stores {
			used := float64(max(0, st.after.CPU-st.before.CPU)) / n
			if asksSQL(st) {
				c.PostgresCPU += used
			} else {
				c.RedisCPU += used
			}
		}
	}
}

// leftovers counts what the strategy keeps when it is over, and then measures what one
// decision costs.
func (p *pass) leftovers(ctx context.Context) error {
	c := &p.run.Cost
	if !p.d.part.First() {
		return nil // it would be told twice
	}
	if err := p.keep(ctx); err != nil {
		return err
	}
	// A store that has failed over has no replica any more. After a fault connections may be dead, and scripts forgotten.
	whole := !slices.ContainsFunc(p.s.outages, func(o *outage) bool { return o.Failover || o.Fault != "" })
	if whole && p.run.Repetition == 1 && !p.d.stop.Load() && !p.m.latencyOnly {
		probe, err := guard.Within(ctx, p.s.aside(), guard.Grace(p.s.Deadline), "the cost probe", p.probe)
		if err != nil {
			return err
		}
		c.Probe = probe
	}
	return nil
}
