package measure

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// settleLimit bounds how long jobs may take to become idle.
const settleLimit = 30 * time.Second

// catchUpLimit bounds how long jobs may have work from the warm-up.
const catchUpLimit = 10 * settleLimit

// readers is how many counters are read at a time.
const readers = 8

// catchUp has jobs do what the warm-up left to them. A round may take as long as those at rest together: what a queue
// of counts holds is written one by one, and a busy machine takes its time for that.
func (m *measurement) catchUp(ctx context.Context, s *site) error {
	for began, again := m.timebase.nano(), true; again; {
		var err error
		again, err = guard.Within(ctx, settleLimit, guard.Grace(m.cfg.DecisionTimeout), "its jobs", s.CatchUp)
		if err != nil {
			return err
		}
		if again && time.Duration(m.timebase.nano()-began) > catchUpLimit {
			return fmt.Errorf("its jobs still have work %v after the warm-up", catchUpLimit)
		}
	}
	return nil
}

// judge turns a finished pass into its figures. The jobs have stopped.
func (p *pass) judge(ctx context.Context) error {
	drive := p.d
	run := p.run
	run.ElapsedNS = max(drive.end-drive.epoch, 0)
	p.discardFailed()
	p.losses()
	facts := p.facts()
	if err := p.latencies(); err != nil {
		return err
	}
	if err := p.settlement(); err != nil {
		return err
	}
	p.costs()
	if p.failed == nil {
		switch err := p.ask(ctx, facts); {
		case err == nil:
		case len(facts.Noticed) == 0:
			return err
		default: // from one whose store failed
			p.discard("store-not-read", results.DiscardsNothing, "what the stores held at the end is not known: %v", err)
		}
	}
	jumps, err := p.counters.jumps(p, facts)
	if err != nil {
		return err
	}
	facts.Noticed = append(facts.Noticed, jumps...)
	behind := newSlowest(run.ElapsedNS)
	asked := askedHash{}
	thirds := thirdsOf(run)
	over := overTimeOf(run)
	jobs := p.jobLatencies()
	looks := []func(*oracle.Event){behind.take, asked.take, thirds.take, over.take}
	for _, j := range jobs {
		looks = append(looks, j.take)
	}
	switch _, err := harness.Judge(ctx, run, facts, eachTake(looks...)); {
	case errors.Is(err, harness.ErrNotJudged):
		drive.abandoned = true
		run.ThroughputPerS = float64(run.Issued) / time.Duration(max(run.ElapsedNS, 1)).Seconds()
		return nil
	case err != nil:
		return err
	}
	if run.ElapsedNS > 0 {
		run.ThroughputPerS = float64(run.Issued) / time.Duration(run.ElapsedNS).Seconds()
	}
	p.tails(behind)
	run.OverTime = over.out
	for _, j := range jobs {
		run.Jobs = append(run.Jobs, j.finish())
	}
	p.audit()
	audit := p.measurement.across
	audit.sameRequests(run, asked.hash)
	audit.freshStream(run, p.measurement.random(drive.stream))
	if !drive.lateness.open {
		audit.stationary(run, thirds)
	}
	return nil
}

// facts are what the pass knows of its requests and of what happened meanwhile.
func (p *pass) facts() *harness.Facts {
	drive := p.d
	facts := &harness.Facts{
		Plan: &p.measurement.cfg.Plan, Selection: p.site.Selection, Policy: p.policy, Epoch: drive.timebase.time(drive.epoch),
		Initial: func(s uint32) int64 { return drive.subjects.at(s).initial },
		History: drive.history, Cells: p.cells(), Counts: drive.counts,
		Partial: drive.stop.Load() && !drive.full.Load(), Instances: p.measurement.cfg.Instances, Grace: reconnectGrace,
		SyncPeriod: p.site.AchievedPeriod(), Tiers: format.Strings(*drive.rec.tiers.names.Load()),
		TiersFolded: drive.rec.tiers.folded.Load(),
	}
	facts.ClockAhead, facts.ClockWrong = p.measurement.bound()
	facts.FailedRounds, facts.JobError = p.site.FailedRounds()
	for _, c := range p.site.clocks {
		facts.Skews, facts.SkewFrom = append(facts.Skews, c.Ahead), append(facts.SkewFrom, p.site.wrongFrom(c)-drive.epoch)
	}
	for _, outage := range p.site.outages {
		if span, ok := outage.span(drive.epoch); ok {
			facts.Outages = append(facts.Outages, span)
		}
	}
	facts.Outages = append(facts.Outages, p.measurement.cfg.NetworkSpans(false, p.run.ElapsedNS)...)
	for _, store := range p.site.stores {
		facts.Evicts = facts.Evicts || store.Info().Evicts
	}
	facts.Noticed, facts.Pause = p.noticed(), time.Duration(p.site.paused.Load())
	facts.Unwatched = p.stores.Len() < len(p.site.stores)
	facts.LimitChanges = p.limits.changes(drive.epoch)
	facts.Overwritten = p.overwritten
	return facts
}

// answers is an error if a store did not answer when the pass was over: it is not
// asked for more.
func (p *pass) answers() error {
	if names := p.stores.Absent(); len(names) > 0 {
		return fmt.Errorf("%s did not answer", strings.Join(names, " and "))
	}
	return nil
}

// ask asks the strategy, and the stores, what they hold. What could not be asked in
// time is missing from a run that was ended.
func (p *pass) ask(ctx context.Context, facts *harness.Facts) error {
	for _, look := range []func() error{
		p.answers,
		func() error { return p.read(ctx, facts) },
		func() error { return p.leftovers(ctx) },
	} {
		switch err := look(); {
		case err == nil || ctx.Err() != nil:
		case guard.Stack(err) != "": // what was decided is judged all the same
			p.failed = err
			p.site.lose()
			p.discardFailed()
			return nil
		default:
			return err
		}
	}
	return nil
}

// discardFailed says why the strategy was asked nothing any more.
func (p *pass) discardFailed() {
	err := p.failed
	if err == nil {
		return
	}
	p.run.DidNotReturn = int64(len(p.d.hung))
	if hung := new(guard.HungError); errors.As(err, &hung) {
		err = fmt.Errorf("%s did not return: %w; it is not run again", format.Number(max(p.run.DidNotReturn, 1), "call"), err)
	}
	harness.DiscardFailed(p.run, err)
}

// cells are the online counters of every window touched.
func (p *pass) cells() iter.Seq2[oracle.Key, *oracle.Cell] {
	return func(yield func(oracle.Key, *oracle.Cell) bool) {
		for i, subject := range p.d.subjects.all() {
			for cell := subject.cells.Load(); cell != nil; cell = cell.next {
				if !yield(oracle.Key{Subject: i, Index: cell.index}, &cell.Cell) {
					return
				}
			}
		}
	}
}

// read reads the counters twice: at rest, and after the background jobs have run
// until they are idle.
func (p *pass) read(ctx context.Context, facts *harness.Facts) error {
	if !p.site.Counts() || p.measurement.latencyOnly || !p.measurement.cfg.First() {
		return nil
	}
	var touched []uint32
	for i, subject := range p.d.subjects.all() {
		if subject.touched() {
			touched = append(touched, i)
		}
	}
	var subjects []harness.Subject
	for _, n := range p.measurement.cfg.Sample(touched, p.run.Repetition) {
		subjects = append(subjects, harness.Subject{Number: n, Name: p.d.subjects.at(n).name})
	}
	how := harness.ReadConfig{Policy: p.d.limit.Load().policy, Now: func() int64 {
		return p.d.timebase.nano() - p.d.epoch
	}, Parallel: readers}
	list, err := p.readCounters(ctx, how, subjects)
	if err != nil {
		return err
	}
	if p.measurement.cfg.Peers != nil { // their memory and their jobs are out of reach
		stored := slices.DeleteFunc(slices.Clone(list), func(reading harness.Reading) bool { return reading.Own })
		if len(stored) < len(list) || len(p.site.Jobs) > 0 {
			p.discard("peers-not-judged", results.DiscardsNothing, "the drift of what instances keep to themselves, and of all "+
				"counters after jobs have run, is undecided: not judged over several processes")
		}
		facts.Readings = append(facts.Readings, harness.Readings{At: harness.AtRest, List: stored})
		return nil
	}
	facts.Readings = append(facts.Readings, harness.Readings{At: harness.AtRest, List: list})
	if len(p.site.Jobs) == 0 {
		return nil
	}
	start := p.d.timebase.nano()
	idle, err := guard.Within(ctx, settleLimit, guard.Grace(p.site.Deadline), "its jobs",
		func(ctx context.Context) (bool, error) { return p.site.Settle(ctx), nil })
	if err != nil {
		return err
	}
	took := p.d.timebase.nano() - start
	if !idle {
		p.run.Audit.Discard("jobs-not-idle", results.DiscardsNothing,
			fmt.Sprintf("background jobs still changed something after %s", settleLimit))
	}
	list, err = p.readCounters(ctx, how, subjects)
	if err != nil {
		return err
	}
	facts.Readings = append(facts.Readings, harness.Readings{At: harness.AfterJobs, SettledNS: took, List: list})
	return nil
}

// readCounters reads until all have answered. An outage leaves pools with dead connections, of which each is found when
// it is used, and a client may look for its server once a second alone.
func (p *pass) readCounters(ctx context.Context, how harness.ReadConfig,
	subjects []harness.Subject) (list []harness.Reading, err error) {
	const limit = 10 * time.Second
	for began := p.d.timebase.nano(); ; {
		list, err = p.site.Read(ctx, how, subjects)
		if err == nil || len(p.site.outages) == 0 || p.d.timebase.nano()-began > int64(limit) {
			return list, err
		}
		if stopped := (clock.Wall{}).Sleep(ctx, 10*time.Millisecond); stopped != nil {
			return list, err
		}
	}
}

// settlement records what became of admitted requests, if callers settle.
func (p *pass) settlement() error {
	if !p.measurement.cfg.Workload.GivesBack {
		return nil
	}
	latency, err := p.d.rec.mergeOne(func(s *stripe) *results.Histogram { return s.settle }).Latency()
	if err != nil {
		return err
	}
	n := &p.d.settled
	p.run.Settlement = &results.Settlement{
		Commits: n.commits.Load(), Refunds: n.refunds.Load(), Abandoned: n.abandoned.Load(), Errors: n.failed.Load(),
		Service:           latency,
		ChargedForNothing: n.chargedForNothing.Load(),
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
	p.run.Response = &all
	p.run.Service = service
	lateness := &p.d.lateness
	wait := rec.mergeOne(func(s *stripe) *results.Histogram { return s.wait })
	p.run.Lateness = &results.Lateness{
		PacerP50: lateness.pacer.Quantile(0.5), PacerP99: lateness.pacer.Quantile(0.99),
		WorkerP50: wait.Quantile(0.5), WorkerP99: wait.Quantile(0.99),
		BacklogHalf: lateness.backlogHalf, BacklogEnd: lateness.backlogEnd, Saturated: lateness.saturated(),
	}
	return nil
}

// latency is the whole of one kind of histogram with its parts.
func (r *recorder) latency(pick func(*stripe) *[3 * maxTiers]*results.Histogram) (results.Latency, error) {
	var parts []results.Part
	for k, histogram := range r.merge(pick) {
		if histogram != nil {
			parts = append(parts, results.Part{Outcome: outcomes[k/maxTiers], Tier: r.tiers.name(uint8(k % maxTiers)),
				Histogram: histogram})
		}
	}
	return results.LatencyOf(parts)
}
