package sim

import (
	"slices"

	"github.com/quotabench/quotabench/harness/internal/figures"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// blank is a run with everything that is known before it starts.
func (p *pass) blank() results.Run {
	c := p.cfg
	window := c.Policy.Window.Kind.String()
	if c.Policy.Window.Length > 0 {
		window += " " + c.Policy.Window.Length.String()
	}
	n := int64(4096)
	if l := p.stream.Len(); l > 0 {
		n = min(n, l)
	}
	params := results.Params{
		Label: p.sel.String(), Limit: c.Policy.Limit, Unit: c.Policy.Unit, Window: window,
		Loop: results.ClosedLoop, Workers: c.Workers, Instances: c.Topology.total(),
		Subjects: workloads.Subjects(p.stream), Requests: c.Requests, DurationNS: int64(c.Duration), Speed: c.Stream.Speed,
		Workload: figures.Workload(c.Stream),
		Stream:   workloads.Fingerprint(p.stream, n),
	}
	for _, o := range c.Outages {
		params.Outages = append(params.Outages, o.String())
	}
	if p.open() {
		params.Loop, params.Arrivals = results.OpenLoop, "recorded"
		if c.Stream.Speed == 0 {
			params.RatePerS = p.rate()
			params.Arrivals = c.Arrivals
			setDefault(&params.Arrivals, "poisson")
		}
	}
	return results.Run{
		Strategy: p.sel.Name, Form: string(p.sel.Form), Options: p.sel.Options, Policy: c.Policy.Name,
		Workload: c.Workload.Name, Params: params, Repetition: 1, Guarantee: []results.Clause{},
		Audit: results.Audit{Valid: true, TimingsValid: true, Reasons: []results.Reason{}},
	}
}

// judge turns a finished pass into its figures.
func (p *pass) judge() error {
	d, r := p.d, &p.run
	r.Issued, r.Admitted, r.Rejected, r.Errors, r.Degraded = d.issued, d.admitted, d.rejected, d.failed, d.degraded
	if d.firstError != nil {
		r.FirstError = d.firstError.Error()
	}
	r.ElapsedNS = max(0, d.lastEnd-d.epoch)
	d.series.finish()
	if err := p.latencies(); err != nil {
		return err
	}
	events := d.history.Events()
	cfg := oracle.Config{
		Window: p.policy.Window, Limit: p.policy.Limit, Epoch: p.cfg.Start,
		Initial: func(s uint32) int64 { return d.truth.subjects[s].initial },
	}
	v := oracle.Judge(cfg, events)
	figures.Correctness(&p.run, &v, p.policy.Limit)
	p.rolling(cfg, events, &v)
	if err := p.drift(events); err != nil {
		return err
	}
	p.costs()
	p.audit(&v)
	return nil
}

func (p *pass) latencies() error {
	d, r := p.d, &p.run
	keys := make([][2]uint8, 0, len(d.parts))
	for k := range d.parts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]uint8) int { return (int(a[0])-int(b[0]))*256 + int(a[1]) - int(b[1]) })
	var parts []results.Part
	for _, k := range keys {
		name := [...]string{"admitted", "rejected", "error"}[k[0]]
		parts = append(parts, results.Part{Outcome: name, Tier: string(d.tiers[k[1]]), Histogram: d.parts[k]})
	}
	latency, err := results.LatencyOf(parts)
	if err != nil {
		return err
	}
	r.Service = latency
	if p.open() {
		if r.Service, err = d.service.Latency(); err != nil {
			return err
		}
		r.Response = &latency
	}
	if p.cfg.Workload.GivesBack {
		l, err := d.settled.Latency()
		if err != nil {
			return err
		}
		r.Settlement = &results.Settlement{Commits: d.commits, Refunds: d.refunds, Abandoned: d.abandoned, Errors: d.settleErrors, Service: l}
	}
	return nil
}

func (p *pass) costs() {
	c, n := &p.run.Cost, float64(p.d.issued)
	c.KeysAtEnd, c.KeysWithoutTTL = p.st.keys()
	if n == 0 {
		return
	}
	var commands int64
	for _, r := range p.st.redis {
		commands += r.served
	}
	c.Commands = float64(commands) / n
	c.ModelSQL = float64(p.st.postgres.served) / n
	c.RoundTrips = float64(p.st.w.legs) / n
	if m, ok := p.st.instances[0].(strategies.Meter); ok {
		p.run.Meter = map[string]int64{}
		for i := range p.st.instances {
			if i > 0 {
				m = p.st.instances[i].(strategies.Meter)
			}
			for _, x := range m.Measures() {
				p.run.Meter[x.Name] += x.Value
			}
		}
	}
}
