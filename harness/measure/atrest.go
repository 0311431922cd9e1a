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
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// settleLimit bounds how long jobs may take to become idle.
const settleLimit = 30 * time.Second

// readers is how many counters are read at a time.
const readers = 8

// atRest condenses the records of a pass in which nothing is in flight any more, and asks the strategy and the stores
// what they hold. The jobs have stopped.
func (p *pass) atRest(ctx context.Context) error {
	p.run.ElapsedNS = max(p.drive.end-p.drive.epoch, 0)
	p.discardFailed()
	p.losses()
	p.facts = p.newFacts()
	if err := p.latencies(); err != nil {
		return err
	}
	if err := p.reportSettlements(); err != nil {
		return err
	}
	p.costs()
	if p.failed != nil {
		return nil
	}
	err := p.ask(ctx)
	if err != nil && len(p.facts.Noticed) > 0 { // its store failed
		p.discard("store-not-read", codes.DiscardsNothing, "what the stores held at the end is not known: %v", err)
		return nil
	}
	return err
}

// newFacts are what the pass knows of its requests and of what happened meanwhile.
func (p *pass) newFacts() *harness.Facts {
	drive := p.drive
	plan := &p.measurement.cfg.Plan
	facts := &harness.Facts{
		Plan: plan, Selection: p.site.Selection, Policy: p.policy,
		Epoch:   drive.timebase.time(drive.epoch),
		Initial: func(subject uint32) int64 { return drive.subjects.at(subject).initial },
		History: drive.history, Cells: p.cells(), Counts: drive.counts,
		Partial:   drive.stop.Load() && !drive.full.Load(),
		Instances: plan.Instances, SyncPeriod: p.site.AchievedPeriod(),
		Tiers: format.Strings(*drive.rec.tiers.names.Load()), TiersFolded: drive.rec.tiers.folded.Load(),
	}
	facts.FailedRounds, facts.JobError = p.site.FailedRounds()
	p.addClocks(facts)
	p.addTrouble(facts)
	return facts
}

// addClocks adds how far clocks were wrong.
func (p *pass) addClocks(facts *harness.Facts) {
	facts.ClockAhead, facts.ClockWrong = p.measurement.bound()
	for _, clock := range p.site.clocks {
		from := p.site.wrongFrom(clock) - p.drive.epoch
		facts.Skews = append(facts.Skews, clock.Ahead)
		facts.SkewFrom = append(facts.SkewFrom, from)
	}
}

// addTrouble adds failures of stores and of the network, planned or not, and changes of limits and of counters.
func (p *pass) addTrouble(facts *harness.Facts) {
	epoch := p.drive.epoch
	for _, outage := range p.site.outages {
		if span, ok := outage.span(epoch); ok {
			facts.Outages = append(facts.Outages, span)
		}
	}
	facts.Outages = append(facts.Outages, p.measurement.cfg.NetworkSpans(false, p.run.ElapsedNS)...)
	facts.Grace = reconnectGrace
	for _, store := range p.site.stores {
		facts.Evicts = facts.Evicts || store.Info().Evicts
	}
	facts.Noticed = p.noticed()
	facts.Pause = time.Duration(p.site.paused.Load())
	facts.Unwatched = p.stores.Len() < len(p.site.stores)
	facts.LimitChanges = p.limits.changes(epoch)
	facts.Overwritten = p.overwritten
}

// answers is an error if a store did not answer when the pass was over: it is not
// asked for more.
func (p *pass) answers(context.Context) error {
	if names := p.stores.Absent(); len(names) > 0 {
		return fmt.Errorf("%s did not answer", strings.Join(names, " and "))
	}
	return nil
}

// ask asks the strategy, and the stores, what they hold. What could not be asked in
// time is missing from a run that was ended.
func (p *pass) ask(ctx context.Context) error {
	for _, look := range []step{p.answers, p.read, p.leftovers} {
		switch err := look(ctx); {
		case err == nil || ctx.Err() != nil:
		case guard.Stack(err) != "": // decisions up to now are judged all the same
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
	p.run.DidNotReturn = int64(len(p.drive.hung))
	if hung := new(guard.HungError); errors.As(err, &hung) {
		err = fmt.Errorf("%s did not return: %w; it is not run again", format.Number(max(p.run.DidNotReturn, 1), "call"), err)
	}
	harness.DiscardFailed(p.run, err)
}

// cells are the online counters of every window touched.
func (p *pass) cells() iter.Seq2[oracle.Key, *oracle.Cell] {
	return func(yield func(oracle.Key, *oracle.Cell) bool) {
		for i, subject := range p.drive.subjects.all() {
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
func (p *pass) read(ctx context.Context) error {
	config := p.measurement.cfg
	if !p.site.Counts() || p.measurement.latencyOnly || !config.First() {
		return nil
	}
	subjects := p.subjectsToRead()
	list, err := p.readCounters(ctx, subjects)
	if err != nil {
		return err
	}
	if config.Peers != nil { // their memory and their jobs are out of reach
		p.addReadings(harness.Readings{At: harness.AtRest, List: p.stored(list)})
		return nil
	}
	p.addReadings(harness.Readings{At: harness.AtRest, List: list})
	if len(p.site.Jobs) == 0 {
		return nil
	}
	took, err := p.settleJobs(ctx)
	if err != nil {
		return err
	}
	list, err = p.readCounters(ctx, subjects)
	if err != nil {
		return err
	}
	p.addReadings(harness.Readings{At: harness.AfterJobs, SettledNS: took, List: list})
	return nil
}

func (p *pass) addReadings(readings harness.Readings) {
	p.facts.Readings = append(p.facts.Readings, readings)
}

// subjectsToRead are the subjects whose counters are read: all that requests asked for, or a sample of them.
func (p *pass) subjectsToRead() (out []harness.Subject) {
	var touched []uint32
	for number, subject := range p.drive.subjects.all() {
		if subject.touched() {
			touched = append(touched, number)
		}
	}
	for _, number := range p.measurement.cfg.Sample(touched, p.run.Repetition) {
		out = append(out, harness.Subject{Number: number, Name: p.drive.subjects.at(number).name})
	}
	return out
}

// stored are the readings of what all generators share. It is said if there is more.
func (p *pass) stored(list []harness.Reading) []harness.Reading {
	stored := slices.DeleteFunc(slices.Clone(list), func(reading harness.Reading) bool { return reading.Own })
	if len(stored) < len(list) || len(p.site.Jobs) > 0 {
		p.discard("peers-not-judged", codes.DiscardsNothing, "the drift of what instances keep to themselves, and of all "+
			"counters after jobs have run, is undecided: not judged over several processes")
	}
	return stored
}

// settleJobs runs the background jobs until they are idle, and returns how long that took.
func (p *pass) settleJobs(ctx context.Context) (took int64, err error) {
	start := p.drive.timebase.nano()
	idle, err := guard.Within(ctx, settleLimit, guard.Grace(p.site.Deadline), "its jobs",
		func(ctx context.Context) (bool, error) { return p.site.Settle(ctx), nil })
	if err != nil {
		return 0, err
	}
	took = p.drive.timebase.nano() - start
	if !idle {
		p.discard("jobs-not-idle", codes.DiscardsNothing, "background jobs still changed something after %s", settleLimit)
	}
	return took, nil
}

// readCounters reads until all have answered. An outage leaves pools with dead connections, of which each is found when
// it is used, and a client may look for its server once a second alone.
func (p *pass) readCounters(ctx context.Context, subjects []harness.Subject) (list []harness.Reading, err error) {
	const limit = int64(10 * time.Second)
	drive := p.drive
	sinceEpoch := func() int64 { return drive.timebase.nano() - drive.epoch }
	how := harness.ReadConfig{Policy: drive.limit.Load().policy, Now: sinceEpoch, Parallel: readers}
	began := drive.timebase.nano()
	for {
		list, err = p.site.Read(ctx, how, subjects)
		if err == nil || len(p.site.outages) == 0 || drive.timebase.nano()-began > limit {
			return list, err
		}
		if stopped := (clock.Wall{}).Sleep(ctx, 10*time.Millisecond); stopped != nil {
			return list, err
		}
	}
}

// reportSettlements records what became of admitted requests, if callers settle.
func (p *pass) reportSettlements() error {
	if !p.measurement.cfg.Workload.GivesBack {
		return nil
	}
	latency, err := p.drive.rec.mergeOne(func(s *stripe) *results.Histogram { return s.settle }).Latency()
	if err != nil {
		return err
	}
	settlements := &p.drive.settlements
	p.run.Settlement = &results.Settlement{
		Service: latency, ChargedForNothing: settlements.chargedForNothing.Load(),
		Commits: settlements.commits.Load(), Refunds: settlements.refunds.Load(), Abandoned: settlements.abandoned.Load(),
		Errors: settlements.failed.Load(),
	}
	return nil
}

// latencies condenses the recorder's histograms.
func (p *pass) latencies() error {
	rec := p.drive.rec
	all, err := rec.latency(func(s *stripe) *[3 * maxTiers]*results.Histogram { return &s.latency })
	if err != nil {
		return err
	}
	p.run.Service = all
	if !p.drive.lateness.open {
		return nil
	}
	service, err := rec.latency(func(s *stripe) *[3 * maxTiers]*results.Histogram { return &s.service })
	if err != nil {
		return err
	}
	p.run.Response = &all
	p.run.Service = service
	lateness := &p.drive.lateness
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
