package measure

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// readers is how many counters are read at a time.
const readers = 8

// judge turns a finished pass into its figures. The jobs have stopped.
func (p *pass) judge(ctx context.Context) error {
	d, r := p.d, p.run
	r.ElapsedNS = max(d.end-d.epoch, 0)
	c := &d.counts
	facts := &harness.Facts{
		Plan: &p.m.cfg.Plan, Selection: p.s.sel, Policy: p.policy, Epoch: d.tb.time(d.epoch),
		Initial: func(s uint32) int64 { return d.subjects.at(s).initial },
		History: d.history, Cells: p.cells(),
		Counts: harness.Counts{
			Admitted: c.admitted.Load(), Rejected: c.rejected.Load(), Errors: c.failed.Load(),
			Prescribed: c.prescribed.Load(), Degraded: c.degraded.Load(), FirstError: d.firstError,
		},
		Partial: d.stop.Load() && !d.full.Load(), Instances: p.m.cfg.Instances, Grace: reconnectGrace,
		SyncPeriod: p.s.AchievedPeriod(), TiersFolded: d.rec.tiers.folded.Load(),
	}
	facts.FailedRounds, facts.JobError = p.s.FailedRounds()
	for _, o := range p.s.outages {
		if span, ok := o.span(d.epoch); ok {
			facts.Outages = append(facts.Outages, span)
		}
	}
	if err := p.latencies(); err != nil {
		return err
	}
	if err := p.settlement(); err != nil {
		return err
	}
	if err := p.read(ctx, facts); err != nil {
		return err
	}
	if err := p.costs(ctx); err != nil {
		return err
	}
	stalls, asked, thirds := p.stallFinder(), askedHash{}, thirdsOf(r)
	if _, err := harness.Judge(r, facts, stalls.visit, asked.visit, thirds.visit); err != nil {
		return err
	}
	if r.ElapsedNS > 0 {
		r.ThroughputPerS = float64(r.Issued) / time.Duration(r.ElapsedNS).Seconds()
	}
	stalls.finish()
	p.audit()
	a := p.m.across
	a.sameRequests(r, asked.hash)
	a.freshStream(r, p.m.random(d.stream))
	if !d.lateness.open {
		a.stationary(r, thirds)
	}
	return nil
}

// cells are the online counters of every window touched.
func (p *pass) cells() iter.Seq2[oracle.Key, *oracle.Cell] {
	return func(yield func(oracle.Key, *oracle.Cell) bool) {
		for i, s := range p.d.subjects.all() {
			for c := s.cells.Load(); c != nil; c = c.next {
				if !yield(oracle.Key{Subject: i, Index: c.index}, &c.Cell) {
					return
				}
			}
		}
	}
}

// read reads the counters twice: at rest, and after the background jobs have run
// until they are idle.
func (p *pass) read(ctx context.Context, f *harness.Facts) error {
	if !p.s.Counts() || p.m.latencyOnly {
		return nil
	}
	var touched []uint32
	for i, s := range p.d.subjects.all() {
		if s.touched() {
			touched = append(touched, i)
		}
	}
	var subjects []harness.Subject
	for _, n := range p.m.cfg.Sample(touched, p.run.Repetition) {
		subjects = append(subjects, harness.Subject{Number: n, Name: p.d.subjects.at(n).name})
	}
	how := harness.ReadConfig{Policy: p.policy, Now: func() int64 { return p.d.tb.nano() - p.d.epoch }, Parallel: readers}
	list, err := p.s.Read(ctx, how, subjects)
	if err != nil {
		return err
	}
	f.Readings = append(f.Readings, harness.Readings{At: harness.AtRest, List: list})
	start := p.d.tb.nano()
	limited, cancel := context.WithTimeout(ctx, harness.SettleLimit)
	defer cancel()
	any, idle := p.s.Settle(limited)
	if !any {
		return nil
	}
	took := p.d.tb.nano() - start
	if !idle {
		p.run.Audit.Strike("jobs-not-idle", results.StrikesNote, fmt.Sprintf("background jobs still changed something after %s", harness.SettleLimit))
	}
	if list, err = p.s.Read(ctx, how, subjects); err != nil {
		return err
	}
	f.Readings = append(f.Readings, harness.Readings{At: harness.AfterJobs, SettledNS: took, List: list})
	return nil
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
		Commits: n.commits.Load(), Refunds: n.refunds.Load(), Abandoned: n.abandoned.Load(), Errors: n.failed.Load(), Service: l,
	}
	return nil
}

// latencies condenses the recorder's histograms.
func (p *pass) latencies() error {
	rec := p.d.rec
	all, err := rec.latency(func(s *stripe) *[3 * maxTiers]*results.Histogram { return &s.latency })
	if err != nil {
		return err
	}
	p.run.Service = all
	if !p.d.lateness.open {
		return nil
	}
	service, err := rec.latency(func(s *stripe) *[3 * maxTiers]*results.Histogram { return &s.service })
	if err != nil {
		return err
	}
	p.run.Response, p.run.Service = &all, service
	l, wait := &p.d.lateness, rec.mergeOne(func(s *stripe) *results.Histogram { return s.wait })
	p.run.Lateness = &results.Lateness{
		PacerP50: l.pacer.Quantile(0.5), PacerP99: l.pacer.Quantile(0.99),
		WorkerP50: wait.Quantile(0.5), WorkerP99: wait.Quantile(0.99),
		BacklogHalf: l.backlogHalf, BacklogEnd: l.backlogEnd, Saturated: l.saturated(),
	}
	return nil
}

// stallFinder counts the separate events behind the tail of service times, from
// the history, and in an open loop those behind the tail of response times, from
// the moments that the recorder kept.
type stallFinder struct {
	service, response *results.Latency // response is nil in a closed loop
	slow              *slowest
	p99, p999         []int64
}

func (p *pass) stallFinder() *stallFinder {
	if !p.d.lateness.open {
		return &stallFinder{service: &p.run.Service}
	}
	return &stallFinder{service: &p.run.Service, response: p.run.Response, slow: p.d.slow}
}

func (f *stallFinder) visit(events []oracle.Event) {
	for i := range events {
		switch e := &events[i]; {
		case e.Kind != oracle.Take:
		case e.Reply-e.Call >= f.service.P999:
			f.p999 = append(f.p999, e.Call)
			fallthrough
		case e.Reply-e.Call >= f.service.P99:
			f.p99 = append(f.p99, e.Call)
		}
	}
}

func (f *stallFinder) finish() {
	slices.Sort(f.p99)
	slices.Sort(f.p999)
	f.service.StallsP99, f.service.StallsP999 = results.Stalls(f.p99), results.Stalls(f.p999)
	if f.response != nil {
		f.response.StallsP99, f.response.StallsP999 = f.slow.stalls(f.response.P99), f.slow.stalls(f.response.P999)
	}
}

// latency is the whole of one kind of histogram with its parts.
func (r *recorder) latency(pick func(*stripe) *[3 * maxTiers]*results.Histogram) (results.Latency, error) {
	m := r.merge(pick)
	var parts []results.Part
	for out, name := range outcomes {
		for tier := range uint8(maxTiers) {
			parts = append(parts, results.Part{Outcome: name, Tier: r.tiers.name(tier), Histogram: m.parts[[2]uint8{uint8(out), tier}]})
		}
	}
	return results.LatencyOf(parts)
}
