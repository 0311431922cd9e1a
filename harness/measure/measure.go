package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Report is what a measurement found.
type Report struct {
	Runs []results.Run
	// Info describes the workload's stream.
	Info workloads.Info
	// Interrupted is set if the context ended before the last round.
	Interrupted bool
	// OutOfTime is set if there was no time in the budget for all rounds.
	OutOfTime bool
	// Skipped are strategies that took no part in later rounds because a store that they
	// need had stopped to answer, by their labels. Their earlier runs are among Runs.
	Skipped []results.Skipped
}

// Err is the first reason for which a run's correctness figures do not count, or
// nil.
func (r *Report) Err() error { return results.Invalid(r.Runs) }

// Measure runs every strategy of cfg that can take part, round by round. When ctx
// ends, the run under way is judged as far as it came and marked partial, and
// what was measured is returned without an error. A run that fails is reported
// with an audit that says so, and the others go on: see [Report.Err].
//
// An error means that nothing could be measured: the configuration or its trace
// is wrong, or the context ended while the first request stream was made.
func Measure(ctx context.Context, cfg Config) (*Report, error) {
	reports, err := Points(ctx, []Config{cfg})
	if err != nil {
		return nil, err
	}
	return reports[0], nil
}

// measurement is a measurement under way.
type measurement struct {
	cfg      *Config
	timebase *timebase
	obs      Observer
	id       string // of this measurement, in key prefixes and schema names
	begun    int    // runs
	// across remembers what the audit compares between runs.
	across *crossRunAudit
	// open measures latency at the common rate; nil until that is known.
	open *measurement
	// latencyOnly is set if nothing is probed and no counter is read.
	latencyOnly bool
	// end ends a measurement with peers, with the reason.
	end context.CancelCauseFunc
	// ahead is by how much the clock counts as ahead of the peers' throughout the run under way.
	ahead time.Duration
	// places puts the passes on cores.
	places *placer
	// leftOut are the stores that stopped to answer, and strategies that did.
	leftOut *leftOut
}

// round is one of a measurement: all strategies are given the same request stream.
type round struct {
	number   int // from 1
	selected []strategies.Selection
	stream   workloads.Stream
	info     workloads.Info
}

// round runs every strategy once, and then once more at a common rate if latency is measured apart.
func (m *measurement) round(ctx context.Context, round *round) []results.Run {
	runs := m.eachOnce(ctx, round)
	m.checkRacyControl(runs, round.selected)
	m.atRate(ctx, round, runs)
	if m.cfg.Open(round.info) {
		reference := m.openReference(ctx, round)
		for i := range runs {
			runs[i].Reference = reference
		}
	}
	for _, run := range runs {
		m.obs.Done(run)
	}
	m.obs.EndRound()
	return runs
}

// eachOnce runs every strategy that is not left out, in an order of the round's own, with a reference loop before and
// after each.
func (m *measurement) eachOnce(ctx context.Context, round *round) (runs []results.Run) {
	rng := rand.New(seed.NewSource(m.cfg.Seed, seed.RoundOrder, uint64(round.number)))
	before, errBefore := m.reference(ctx)
	for _, i := range rng.Perm(len(round.selected)) {
		if ctx.Err() != nil {
			break
		}
		sel := round.selected[i]
		if why := m.leftOut.needs(sel); why != "" {
			m.lose(errors.New(why))
			m.leftOut.skip(sel, round.number, m.cfg.last(), why)
			continue
		}
		m.begun++
		m.obs.Running(sel.String()+m.cfg.at(), round.number, m.cfg.last())
		run, begun := m.attempt(ctx, sel, round)
		if !begun {
			break
		}
		after, err := m.reference(ctx)
		if ctx.Err() != nil { // it was cut short
			after = loop{}
			err = nil
		}
		between(&run, before, after, errors.Join(errBefore, err))
		runs = append(runs, run)
		m.obs.SoFar(runs)
		before = after
		errBefore = err
	}
	return runs
}

// between gives a run the mean of the reference loops before and after it, and how
// much the loop changed in between.
func between(run *results.Run, before, after loop, err error) {
	if err != nil {
		run.Audit.Discard("reference-failed", codes.DiscardsRound, err.Error())
	}
	if before.perS == 0 || after.perS == 0 {
		run.ReferencePerS = max(before.perS, after.perS)
		return
	}
	run.ReferencePerS = (before.perS + after.perS) / 2
	run.ReferenceChange = after.perS / before.perS
	if run.Params.Loop == codes.ClosedLoop {
		run.Reference = before.latencyWith(after)
	}
	if share := max(before.foreign, after.foreign); share > maxForeign {
		others := fmt.Sprintf("Redis processed commands of others while the reference loop ran, %.1f %% of the loop's own",
			100*share)
		run.Audit.Observe("redis-shared", codes.Disturbs, others, "it was not ours alone")
	}
}

// checkRacyControl discards conclusions that the round's racy control shows to be
// unfounded.
func (m *measurement) checkRacyControl(runs []results.Run, selected []strategies.Selection) {
	for _, selection := range selected {
		if selection.Control != strategies.ControlRacy || m.cfg.Peers != nil || !m.cfg.Workload.Crosses {
			continue
		}
		for _, run := range runs {
			if run.Params.Label == selection.String() && run.Leak.Trials > 0 && run.Leak.Units == 0 {
				discardZeroLeaks(runs, selection.String())
			}
		}
	}
}

// siteName is unique among all runs of all processes that share a store.
func (m *measurement) siteName(suffix string) string { return m.id + "_" + suffix }

// attempt runs one strategy and turns a failure into a run that says so. begun is false
// if ctx ended before the first request: there is nothing to report.
func (m *measurement) attempt(ctx context.Context, sel strategies.Selection,
	round *round) (run results.Run, begun bool) {
	if _, other := m.cfg.Policies[sel.String()]; other {
		own := *m
		cfg := *m.cfg
		cfg.Plan = cfg.For(sel)
		own.cfg = &cfg
		m = &own
	}
	run = m.cfg.Blank(sel, round.number, round.stream, round.info)
	run.Params.Pool = m.cfg.Pool
	run.Params.Retries = m.cfg.ClientRetries
	begun, err := m.runOne(ctx, sel, round, &run)
	if !begun && ctx.Err() != nil {
		return run, false
	}
	if err != nil {
		harness.DiscardFailed(&run, err)
		m.lose(err)
	}
	m.cfg.Live.judged(&run)
	if run.Audit.Has(codes.Hung) {
		m.leftOut.hung[sel.String()] = true
	}
	if !run.Audit.Valid {
		m.ask(ctx, storesOf(sel)...)
	}
	return run, true
}

// random reports whether a stream is generated with chance in it: it has several
// subjects to choose from.
func (m *measurement) random(stream workloads.Stream) bool {
	return !m.cfg.Workload.NeedsTrace && workloads.Subjects(stream) > 1
}

// from is the policy with its windows shifted so that one begins now, which is
// where every run begins that its workload does not place differently. Peers
// have agreed on the moment.
func (m *measurement) from(now time.Time) quota.Policy {
	policy := m.cfg.Policy
	if policy.Window.Kind.Tumbling() {
		if now.IsZero() {
			now = m.timebase.time(m.timebase.nano())
		}
		policy.Window.Timeline = quota.Timeline{Real: now, Policy: policy.Window.At(now).Start}
		m.ours(&policy.Window)
	}
	return policy
}

// realign shifts the windows once more, at the moment when the measured pass
// begins, if the workload needs them to meet its requests at a certain moment.
func (m *measurement) realign(policy *quota.Policy, info workloads.Info, now time.Time, expected time.Duration) {
	if aligned := m.cfg.Align(info, now, expected); aligned.Window.Timeline != m.cfg.Policy.Window.Timeline {
		policy.Window.Timeline = aligned.Window.Timeline
		m.ours(&policy.Window)
	}
}

// Observer is told how a measurement goes on. Calls come from one goroutine, except those of Filling.
type Observer interface {
	// Begin is told how many runs there will be.
	Begin(runs int)
	// Running is told which run starts.
	Running(strategy string, round, rounds int)
	// Filling is told which share of what subjects have used at the start is filled in, if that
	// takes requests. Calls come from several goroutines.
	Filling(share float64)
	// SoFar is given the runs of the round under way after each of them. What follows
	// from comparing runs is not yet in them.
	SoFar(round []results.Run)
	// Done is given each finished run of a round when that is complete, partial ones
	// included.
	Done(run results.Run)
	// EndRound is told that a round is complete.
	EndRound()
}

// Silent is an observer that does nothing.
var Silent Observer = silent{}

type silent struct{}

func (silent) Begin(int)                {}
func (silent) Running(string, int, int) {}
func (silent) Filling(float64)          {}
func (silent) SoFar([]results.Run)      {}
func (silent) Done(results.Run)         {}
func (silent) EndRound()                {}

// timebase is where a run's times come from: nanoseconds for measuring, and the
// clock that strategies are given. Both are views of one clock.
type timebase struct {
	nano  func() int64
	time  func(nano int64) time.Time
	clock quota.Clock
}

var wallTime = &timebase{nano: clock.Nano, time: clock.Time, clock: clock.Wall{}}
