package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness/internal/figures"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// judge turns a finished pass into its figures. The jobs have stopped.
func (p *pass) judge(ctx context.Context) error {
	d, r := p.d, p.run
	c := &d.counts
	r.Admitted, r.Rejected, r.Errors = c.admitted.Load(), c.rejected.Load(), c.failed.Load()
	r.Issued, r.Degraded = r.Admitted+r.Rejected+r.Errors, c.degraded.Load()
	if d.firstError != nil {
		r.FirstError = d.firstError.Error()
	}
	r.ElapsedNS = max(d.end-d.epoch, 0)
	if r.ElapsedNS > 0 {
		r.ThroughputPerS = float64(r.Issued) / time.Duration(r.ElapsedNS).Seconds()
	}
	events := d.history.Events()
	if err := p.latencies(events); err != nil {
		return err
	}
	cfg := oracle.Config{
		Window: p.policy.Window, Limit: p.policy.Limit, Epoch: d.tb.time(d.epoch),
		Initial: func(s uint32) int64 { return d.subjects[s].initial },
	}
	v := oracle.Judge(cfg, events)
	p.planned = p.plannedErrors(events)
	figures.Correctness(r, &v, p.policy.Limit)
	r.Guarantee = p.guarantee(&v, p.rolling(cfg, events))
	if err := p.settlement(); err != nil {
		return err
	}
	if err := p.readDrift(ctx, events); err != nil {
		return err
	}
	if err := p.costs(ctx); err != nil {
		return err
	}
	p.audit(&v, cfg)
	a := p.m.across
	a.sameRequests(r, events)
	a.freshStream(r, p.m.random(d.stream))
	if !d.lateness.open {
		a.stationary(r, events)
	}
	return nil
}

// rolling judges the run once more, as if its windows were rolling ones of the
// same length, where one of them ended in mid-run: what a burst around the
// boundary gets is invisible to either window alone. It returns nil elsewhere.
func (p *pass) rolling(cfg oracle.Config, events []oracle.Event) *oracle.Verdict {
	if !p.m.cfg.Workload.Boundary || !p.policy.Window.Kind.Tumbling() {
		return nil
	}
	span := p.policy.Window.At(cfg.Epoch)
	cfg.Window = quota.Window{Kind: quota.Rolling, Length: span.End.Sub(span.Start)}
	v := oracle.Judge(cfg, events)
	worst := int64(0)
	if v.LeakWorst > 0 {
		worst = p.policy.Limit + v.LeakWorst
	} else {
		worst = min(p.policy.Limit, v.Admitted.Units)
	}
	p.run.Rolling = &results.Rolling{
		WorstUnits: worst, Multiple: float64(worst) / float64(p.policy.Limit),
		Units: v.LeakUnits, Possible: v.LeakPossible,
	}
	return &v
}

// settlement records what became of admitted requests, where callers settle.
func (p *pass) settlement() error {
	if !p.m.cfg.Workload.GivesBack {
		return nil
	}
	l, err := p.d.rec.mergeOne(func(s *stripe) *results.Histogram { return s.settle }).Latency()
	if err != nil {
		return err
	}
	n := &p.d.settled
	p.run.Settlement = &results.Settlement{
		Commits: n.commits.Load(), Refunds: n.refunds.Load(), Abandoned: n.abandoned.Load(), Errors: n.failed.Load(), Latency: l,
	}
	return nil
}

// plannedErrors counts errors that a planned outage explains.
func (p *pass) plannedErrors(events []oracle.Event) (n int64) {
	for i := range events {
		e := &events[i]
		if e.Outcome == oracle.Failed && slices.ContainsFunc(p.s.outages, func(o *outage) bool { return o.explains(e, p.d.epoch) }) {
			n++
		}
	}
	return n
}

// latencies condenses the recorder's histograms, and counts the separate stalls
// behind the tail from the history.
func (p *pass) latencies(events []oracle.Event) error {
	rec := p.d.rec
	all, err := rec.latency(func(s *stripe) *[3 * maxTiers]*results.Histogram { return &s.latency })
	if err != nil {
		return err
	}
	if !p.d.lateness.open {
		p.stalls(&all, events)
		p.run.Latency = all
		return nil
	}
	service, err := rec.latency(func(s *stripe) *[3 * maxTiers]*results.Histogram { return &s.service })
	if err != nil {
		return err
	}
	p.stalls(&service, events)
	// A stall delays the responses of all requests that were due meanwhile, so
	// the response's tail stands on no more separate events than the service's.
	all.StallsP99, all.StallsP999 = service.StallsP99, service.StallsP999
	p.run.Latency, p.run.Service = all, &service
	l, wait := &p.d.lateness, rec.mergeOne(func(s *stripe) *results.Histogram { return s.wait })
	p.run.Lateness = &results.Lateness{
		PacerP50: l.pacer.Quantile(0.5), PacerP99: l.pacer.Quantile(0.99),
		WorkerP50: wait.Quantile(0.5), WorkerP99: wait.Quantile(0.99),
		BacklogHalf: l.backlogHalf, BacklogEnd: l.backlogEnd, Saturated: l.saturated(),
	}
	return nil
}

func (p *pass) stalls(l *results.Latency, events []oracle.Event) {
	if p.d.history.Overflowed() {
		return
	}
	var p99, p999 []int64
	for i := range events {
		switch e := &events[i]; {
		case e.Reply-e.Call >= l.P999:
			p999 = append(p999, e.Call)
			fallthrough
		case e.Reply-e.Call >= l.P99:
			p99 = append(p99, e.Call)
		}
	}
	slices.Sort(p99)
	slices.Sort(p999)
	l.StallsP99, l.StallsP999 = results.Stalls(p99), results.Stalls(p999)
}

// latency is the whole of one kind of histogram with its parts.
func (r *recorder) latency(pick func(*stripe) *[3 * maxTiers]*results.Histogram) (results.Latency, error) {
	m := r.merge(pick)
	l, err := m.all.Latency()
	if err != nil {
		return l, err
	}
	for out, name := range outcomes {
		for tier := range uint8(maxTiers) {
			h := m.parts[[2]uint8{uint8(out), tier}]
			if h == nil {
				continue
			}
			part, err := h.Latency()
			if err != nil {
				return l, err
			}
			l.Parts = append(l.Parts, results.LatencyPart{Outcome: name, Tier: r.tiers.name(tier), Latency: part})
		}
	}
	return l, nil
}

// costs are per decision: what went over the connections in the pass, by the
// number of decisions.
func (p *pass) costs(ctx context.Context) error {
	c := &p.run.Cost
	if n := float64(p.run.Issued); n > 0 {
		c.Commands = float64(p.cost.redis.Commands) / n
		c.RoundTrips = float64(p.cost.redis.RoundTrips+p.cost.sql.RoundTrips) / n
		c.Bytes = float64(p.cost.redis.BytesIn+p.cost.redis.BytesOut+p.cost.sql.BytesIn+p.cost.sql.BytesOut) / n
		c.SQL = float64(p.cost.sql.Commands) / n
		c.ModelSQL = float64(p.modelSQL) / n
		c.Allocs = float64(p.allocs) / n
		c.ClientCPU = float64(p.own.used) / n
		c.RunQueue = float64(p.own.waiting) / n
		c.RedisCPU = float64(max(0, p.redisAfter.CPU-p.redisBefore.CPU)) / n
		c.PostgresCPU = float64(max(0, p.sqlAfter.CPU-p.sqlBefore.CPU)) / n
	}
	if p.s.sel.NeedsStore(strategies.NeedRedis) {
		kept, err := p.m.cfg.Redis.Usage(ctx, p.s.scope)
		if err != nil {
			return fmt.Errorf("count keys: %w", err)
		}
		c.KeysAtEnd, c.KeysWithoutTTL = kept.Keys, kept.WithoutTTL
	}
	if p.run.Repetition == 1 && !p.run.Partial {
		probe, err := p.probe(ctx)
		if err != nil {
			return err
		}
		c.Probe = probe
	}
	if mt, ok := p.s.instances[0].(strategies.Meter); ok {
		p.run.Meter = map[string]int64{}
		for _, x := range mt.Measures() {
			p.run.Meter[x.Name] = x.Value
		}
		for _, other := range p.s.instances[1:] {
			for _, x := range other.(strategies.Meter).Measures() {
				p.run.Meter[x.Name] += x.Value
			}
		}
	}
	return nil
}
