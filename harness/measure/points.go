package measure

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Points measures several configurations and returns a report of each, in their order.
// Every round has each of them once, in random order, so that a drift of the machine
// does not look like an effect of what they differ in. They have the stores, the cores,
// the rounds, what ends them early and the observer of the first one, and [Config.Point] tells their runs
// apart. What [Measure] says of ctx and of errors holds here too.
func Points(ctx context.Context, cfgs []Config) ([]*Report, error) {
	if len(cfgs) == 0 {
		return nil, nil
	}
	turns, err := newTurns(cfgs)
	if err != nil {
		return nil, err
	}
	measurements.begun.Add(1)
	defer measurements.ended.Add(1)
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	places := newPlacer(turns.first.cfg)
	defer places.close(running)
	defer forgetSpare()
	for _, point := range turns.points {
		point.end = end
		point.places = places
	}
	turns.first.obs.Begin(turns.runs())
	if err := turns.rounds(running); err != nil {
		return nil, err
	}
	return turns.reports(ctx), nil
}

// turns are points that are measured in turns, round by round.
type turns struct {
	points []*point
	first  *point
}

func newTurns(cfgs []Config) (*turns, error) {
	turns := &turns{}
	for i, cfg := range cfgs {
		if i > 0 {
			cfg.Stores = cfgs[0].Stores
			cfg.Cores = cfgs[0].Cores
			cfg.Observer = cfgs[0].Observer
			cfg.Rounds = turns.first.cfg.Rounds
			cfg.Earlier = cfgs[0].Earlier
		}
		if err := cfg.Complete(); err != nil {
			return nil, err
		}
		turns.points = append(turns.points, newPoint(cfg))
		turns.first = turns.points[0]
	}
	return turns, nil
}

// runs is how many there will be in all rounds.
func (t *turns) runs() (runs int) {
	for _, point := range t.points {
		runs += point.runs()
	}
	return runs
}

// rounds measures round by round, until all are made, ctx ends, the budget is spent or enough is known.
func (t *turns) rounds(ctx context.Context) error {
	first := t.first
	last := first.cfg.last()
	begun := first.timebase.nano()
	longest := int64(0)
	for round := first.cfg.Earlier + 1; round <= last && ctx.Err() == nil; round++ {
		start := first.timebase.nano()
		if first.cfg.outOfTime(round, start-begun+longest) {
			first.report.OutOfTime = true
			return nil
		}
		if err := t.round(ctx, round); err != nil {
			return err
		}
		longest = max(longest, first.timebase.nano()-start)
		if round < last && ctx.Err() == nil && t.enough(round) {
			return nil
		}
	}
	return nil
}

// round measures each point once, in random order. An error of a point counts unless ctx has ended and there is
// something to report.
func (t *turns) round(ctx context.Context, round int) error {
	rng := rand.New(seed.NewSource(t.first.cfg.Seed, seed.PointOrder, uint64(round)))
	for _, i := range rng.Perm(len(t.points)) {
		if ctx.Err() != nil {
			return nil
		}
		err := t.points[i].measure(ctx, round)
		if err != nil && ctx.Err() != nil && t.measured() {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// measured reports whether there is any run.
func (t *turns) measured() bool {
	return slices.ContainsFunc(t.points, func(p *point) bool { return len(p.report.Runs) > 0 })
}

// enough asks about all runs so far whether the measurement may end.
func (t *turns) enough(round int) bool {
	ask := t.first.cfg.Enough
	if ask == nil {
		return false
	}
	var all []results.Run
	for _, point := range t.points {
		all = append(all, point.audited()...)
	}
	return ask(round, all)
}

// reports are those of all points. ctx is the caller's, which says whether they were interrupted.
func (t *turns) reports(ctx context.Context) (reports []*Report) {
	for _, point := range t.points {
		reports = append(reports, point.finish(ctx))
	}
	return reports
}

// measurements are those of this process.
var measurements struct{ begun, ended atomic.Int64 }

// outOfTime reports whether a round does not begin that would end so many nanoseconds after the
// first began.
func (c *Config) outOfTime(round int, end int64) bool {
	made := round - c.Earlier - 1
	budget := int64(c.Budget)
	if made > 0 && made < bounds.LeastRounds {
		budget *= 2
	}
	return budget > 0 && made > 0 && end > budget
}

// watchOthers returns a function that reports whether another measurement of this process was under way since.
func watchOthers() func() bool {
	ended := measurements.ended.Load()
	begun := measurements.begun.Load()
	return func() bool { return begun > ended+1 || measurements.begun.Load() > begun }
}

// point is one configuration of several that are measured in turns.
type point struct {
	*measurement
	selected []strategies.Selection
	report   *Report
	trace    workloads.Stream // nil if requests are generated
}

func newPoint(cfg Config) *point {
	// The name is not derived from the seed: two runs of one seed may share a store.
	id := strings.ToLower(crand.Text()[:12])
	if cfg.Peers != nil {
		id = cfg.Peers.Run()
	}
	measurement := &measurement{cfg: &cfg, timebase: cfg.base, obs: cfg.Observer, id: id, across: newCrossRunAudit(),
		leftOut: &leftOut{why: map[string]string{}, hung: map[string]bool{}}}
	if measurement.timebase == nil {
		measurement.timebase = wallTime
	}
	if measurement.obs == nil {
		measurement.obs = Silent
	}
	p := &point{measurement: measurement, report: &Report{}}
	p.selected, _ = cfg.Split()
	return p
}

// runs is how many there will be in all rounds.
func (p *point) runs() int {
	loops := 1
	if p.cfg.Load.Loop == harness.Both {
		loops = 2
	}
	return len(p.selected) * p.cfg.Rounds * loops
}

// measure runs one round.
func (p *point) measure(ctx context.Context, number int) error {
	stream, err := p.streamOf(ctx, number)
	if err != nil {
		return err
	}
	round := round{number: number, selected: p.selected, stream: stream, info: p.report.Info}
	runs := p.round(ctx, &round)
	p.report.Runs = append(p.report.Runs, runs...)
	return nil
}

// streamOf is the request stream of a round. A trace is the same in every round; generated requests are not,
// so that rounds are not the same sample over and over.
func (p *point) streamOf(ctx context.Context, round int) (workloads.Stream, error) {
	if p.trace != nil {
		return p.trace, nil
	}
	stream, info, err := p.cfg.NewStreamUnless(ctx, round)
	if err != nil {
		return nil, err
	}
	_, err = p.cfg.CheckReplay(info, bounds.MaxDuration)
	if err != nil {
		return nil, err
	}
	p.report.Info = info
	if info.Trace != nil {
		p.trace = stream
	}
	return stream, nil
}

// audited are the runs so far, with what the audit finds by holding the rounds next to each
// other.
func (p *point) audited() []results.Run {
	runs := slices.Clone(p.report.Runs)
	for i := range runs {
		run := &runs[i]
		run.Audit.Reasons = slices.Clone(run.Audit.Reasons)
		if run.Paced != nil {
			paced := *run.Paced
			paced.Audit.Reasons = slices.Clone(paced.Audit.Reasons)
			run.Paced = &paced
		}
	}
	p.across.trends(runs)
	drifted(runs)
	CrossedElsewhere(runs)
	return runs
}

func (p *point) finish(ctx context.Context) *Report {
	p.report.Runs = p.audited()
	p.report.Interrupted = ctx.Err() != nil
	p.report.Skipped = p.leftOut.skipped
	return p.report
}

// last is the number of the last round.
func (c *Config) last() int { return c.Earlier + c.Rounds }

// at is what tells a run of this configuration apart, in words; empty if nothing does.
func (c *Config) at() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(c.Point)) {
		text += fmt.Sprintf(", %s %s", name, c.Point[name])
	}
	return text
}
