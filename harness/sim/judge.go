package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// judge turns a finished pass into its figures, until the context judging ends.
func (p *pass) judge(ctx, judging context.Context) error {
	d, r := p.d, &p.run
	r.ElapsedNS = max(0, d.lastEnd-d.epoch)
	d.series.finish()
	if err := p.latencies(); err != nil {
		return err
	}
	if err := p.costs(ctx); err != nil {
		return err
	}
	facts := &harness.Facts{
		Plan: &p.cfg.Plan, Selection: p.sel, Policy: &p.policy, Epoch: p.cfg.Start,
		Initial: func(s uint32) int64 { return d.truth.subjects[s].initial },
		History: d.history, Counts: d.counts, Partial: ctx.Err() != nil || p.failed != nil,
		Instances: p.cfg.Topology.total(), Skews: p.cfg.Topology.skews(),
		StoresApart: p.cfg.Topology.apart() && needsRedis(p.sel),
		Outages:     p.st.w.sinceStart(d.epoch), SyncPeriod: p.st.AchievedPeriod(), TiersFolded: d.folded,
		LimitChanges: d.changes,
	}
	facts.FailedRounds, facts.JobError = p.st.FailedRounds()
	if err := p.read(ctx, facts); err != nil {
		return err
	}
	v, err := harness.JudgeUnless(judging, r, facts)
	switch {
	case errors.Is(err, harness.ErrNotJudged):
		p.abandoned = true
		return nil
	case err != nil:
		return err
	}
	p.audit(&v)
	return nil
}

// read reads the counters at rest, where nothing is in flight and woken jobs have
// ended, and once more after all jobs have run until they are idle. Neither is
// part of the trace.
func (p *pass) read(ctx context.Context, f *harness.Facts) error {
	if !p.st.Counts() || p.cut {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var touched []uint32
	for i := range p.d.truth.subjects {
		if p.d.truth.subjects[i].asked {
			touched = append(touched, uint32(i))
		}
	}
	var subjects []harness.Subject
	for _, n := range p.cfg.Sample(touched, 1) {
		subjects = append(subjects, harness.Subject{Number: n, Name: p.d.truth.subjects[n].name})
	}
	how := p.st.howToRead(p.d)
	list, err := p.st.Read(ctx, how, subjects)
	if err != nil {
		return err
	}
	f.Readings = append(f.Readings, harness.Readings{At: harness.AtRest, List: list})
	if any, idle := p.st.Settle(ctx); !any || !idle {
		return nil
	}
	if list, err = p.st.Read(ctx, how, subjects); err != nil {
		return err
	}
	f.Readings = append(f.Readings, harness.Readings{At: harness.AfterJobs, List: list})
	return nil
}

// audit looks for reasons not to believe the run that only a simulation can have.
func (p *pass) audit(v *oracle.Verdict) {
	d := p.d
	strike := func(code, strikes, format string, args ...any) {
		p.run.Audit.Strike(code, strikes, fmt.Sprintf(format, args...))
	}
	if d.inFlight > 0 {
		strike("unfinished", results.StrikesCorrectness, "%d requests were not answered within %v of virtual time", d.inFlight, drain)
	}
	if d.maxBack > 0 {
		strike("backlog", results.StrikesNote, "up to %d requests waited because %d callers were busy", d.maxBack, p.cfg.Workers)
	}
	if d.history.Full() {
		strike("ended-early", results.StrikesNote, "the run ended after %d requests, when its history was nearly full", p.run.Issued)
	}
	// The series is counted as the run goes on, the verdict from the history.
	simple := p.policy.Window.Kind.Tumbling() && !v.Touched.Crossed
	if u := d.truth.leak; u > v.LeakUnits && simple {
		strike("oracles-disagree", results.StrikesCorrectness, "%d units leaked by the series, %d by the verdict", u, v.LeakUnits)
	}
}

// outcomeNames are those of the outcomes that latencies are told apart by.
var outcomeNames = [...]string{oracle.Admitted: "admitted", oracle.Rejected: "rejected", oracle.Failed: "error"}

func (p *pass) latencies() error {
	d, r := p.d, &p.run
	var parts []results.Part
	for out := range d.parts {
		for tier, h := range d.parts[out] {
			if h != nil {
				parts = append(parts, results.Part{Outcome: outcomeNames[out], Tier: string(d.tiers[tier]), Histogram: h})
			}
		}
	}
	latency, err := results.LatencyOf(parts)
	if err != nil {
		return err
	}
	r.Service = latency
	if p.openLoop() {
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

// costs are per decision.
func (p *pass) costs(ctx context.Context) error {
	c, n := &p.run.Cost, float64(p.d.issued)
	u, err := p.st.usage(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	c.KeysAtEnd, c.KeysWithoutTTL = u.Keys, u.WithoutTTL
	if p.failed == nil {
		p.run.Meter = p.st.Meter()
	}
	if n == 0 {
		return nil
	}
	var commands int64
	for _, r := range p.st.redis {
		commands += r.served
	}
	c.Commands = float64(commands) / n
	c.ModelSQL = float64(p.st.postgres.served) / n
	c.RoundTrips = float64(p.st.w.legs) / n
	return nil
}

// spans are the outages as a series has them.
func (p *pass) spans() (out []results.Span) {
	for _, o := range p.st.w.sinceStart(p.d.epoch) {
		out = append(out, results.Span{Store: o.Store, FromNS: o.From, ToNS: o.To})
	}
	return out
}
