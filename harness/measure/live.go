package measure

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Live can be asked how a measurement goes on, at any moment and from any goroutine.
// Give one to [Config.Live]. Latencies are those of the measured passes so far, the one
// under way included, except for the last few requests of each worker; all else is
// known when a run was judged.
type Live struct {
	mu       sync.Mutex
	figures  []*figures
	underWay *figures // nil between passes
	pass     *pass
	began    int64
}

// LiveFigures are those of one strategy in one kind of loop.
type LiveFigures struct {
	// Strategy is its label, and Loop is "closed" or "open".
	Strategy, Loop string
	// Round of the last run, from 1. Running is set while that is measured.
	Round   int
	Running bool
	// Latencies by outcome and tier, over all rounds so far.
	Latencies []stat.LiveLatency
	// PerS is decisions per second in the run under way, or the last one.
	PerS float64
	// Certain is what is certain by now of the run under way, or was at the end of the last
	// one; nil if only the history can tell: if units are given back, if the limit
	// changes, and if windows are not the same for all subjects.
	Certain *liveCertain
	// Lag is the longest time so far between two rounds of a background job in that run; 0
	// if there is none.
	Lag time.Duration
	// Meter are the strategy's own figures of that run so far.
	Meter []results.Measure
	// Judged holds the runs that are over, without their histograms.
	Judged []results.Run
}

// liveCertain is what is certain before a run is judged, by callers' answers alone. Windows
// that a request lies across are left out, and so are the last few answers of each worker.
type liveCertain struct {
	// LeakUnits are units admitted over the limit.
	LeakUnits int64
	// FalseRejects are requests that were rejected although all that had been asked for fitted.
	FalseRejects int64
}

// figures are what is kept of a strategy.
type figures struct {
	LiveFigures
	over []stat.LiveLatency // of passes that are over
}

func (l *Live) of(strategy, loop string) *figures {
	for _, figures := range l.figures {
		if figures.Strategy == strategy && figures.Loop == loop {
			return figures
		}
	}
	f := &figures{LiveFigures: LiveFigures{Strategy: strategy, Loop: loop}}
	l.figures = append(l.figures, f)
	return f
}

// begin is told that a pass begins.
func (l *Live) begin(pass *pass) {
	if l == nil {
		return
	}
	pass.drive.rec.watch()
	pass.drive.shown = true
	l.mu.Lock()
	defer l.mu.Unlock()
	params := &pass.run.Params
	l.underWay = l.of(params.Label, params.Loop)
	l.pass = pass
	l.began = pass.drive.timebase.nano()
	l.underWay.Round = pass.run.Repetition
	l.underWay.Running = true
}

// end is told that it is over, and whether all workers have returned.
func (l *Live) end(returned bool) {
	if l == nil {
		return
	}
	for i := range l.pass.drive.rec.stripes {
		if returned {
			l.pass.drive.rec.stripes[i].flush()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	figures := l.underWay
	now := l.pass.drive.rec.live()
	figures.PerS = l.rate(now)
	figures.over = added(figures.over, now)
	figures.Running = false
	if returned {
		figures.soFar(l.pass)
	}
	l.underWay = nil
	l.pass = nil
}

// soFar takes what is known of the pass at this moment, except latencies.
func (f *LiveFigures) soFar(p *pass) {
	f.Certain = p.certain()
	f.Lag = p.site.AchievedPeriod()
	f.Meter = harness.MeterSince(p.meter, p.site.Meter())
}

// certain is what the online counters tell while requests are under way: what they have of
// answers only grows.
func (p *pass) certain() *liveCertain {
	config := p.measurement.cfg
	kind := config.Policy.Window.Kind
	changes := len(config.Trouble.Of(trouble.Change)) > 0
	if config.Workload.GivesBack || changes || !kind.Tumbling() && kind != quota.Standing {
		return nil
	}
	out := new(liveCertain)
	for _, cell := range p.cells() {
		if tally := cell.Tally(); !tally.Crossed {
			out.LeakUnits += tally.Leak(config.Policy.Limit)
			out.FalseRejects += tally.FalseRejects
		}
	}
	return out
}

// rate is decisions per second of the pass under way.
func (l *Live) rate(now []stat.LiveLatency) float64 {
	decided := int64(0)
	for i := range now {
		if now[i].Outcome != outcomes[2] {
			decided += now[i].Count
		}
	}
	return float64(decided) / (float64(max(l.pass.drive.timebase.nano()-l.began, 1)) / 1e9)
}

// judged is told of a run that is over.
func (l *Live) judged(run *results.Run) {
	if l == nil {
		return
	}
	kept := *run
	kept.Service = results.Latency{}
	kept.Response = nil
	kept.Settlement = nil
	kept.Waiting = nil
	kept.Paced = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	figures := l.of(run.Params.Label, run.Params.Loop)
	figures.Judged = append(figures.Judged, kept)
}

// Figures are those at this moment, in the order in which strategies first ran.
func (l *Live) Figures() []LiveFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []LiveFigures
	for _, figures := range l.figures {
		liveFigures := figures.LiveFigures
		liveFigures.Latencies = slices.Clone(figures.over)
		liveFigures.Judged = slices.Clone(figures.Judged)
		if figures == l.underWay {
			now := l.pass.drive.rec.live()
			liveFigures.PerS = l.rate(now)
			liveFigures.Latencies = added(liveFigures.Latencies, now)
			liveFigures.soFar(l.pass)
		}
		out = append(out, liveFigures)
	}
	return out
}

// added is all of both, by outcome and tier.
func added(all, more []stat.LiveLatency) []stat.LiveLatency {
	for i := range more {
		latency := &more[i]
		same := func(liveLatency stat.LiveLatency) bool {
			return liveLatency.Outcome == latency.Outcome && liveLatency.Tier == latency.Tier
		}
		sum, _ := collect.In(&all, stat.LiveLatency{Outcome: latency.Outcome, Tier: latency.Tier}, same)
		sum.Merge(latency)
	}
	slices.SortFunc(all, func(a, b stat.LiveLatency) int {
		return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Tier, b.Tier))
	})
	return all
}

// liveStripe is what a stripe shows while it is written to. Its lock is taken once for
// several requests.
type liveStripe struct {
	mu    sync.Mutex
	cells [3 * maxTiers]*stat.LiveLatency
}

// liveBatch is how many requests of a worker are not shown yet.
const liveBatch = 8

func (s *liveStripe) add(batch []sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sample := range batch {
		if s.cells[sample.slot] == nil {
			s.cells[sample.slot] = new(stat.LiveLatency)
		}
		s.cells[sample.slot].Add(sample.took, sample.degraded)
	}
}

// watch has the recorder show what it records.
func (r *recorder) watch() {
	for i := range r.stripes {
		r.stripes[i].live = new(liveStripe)
	}
}

// live is what a watched recorder shows.
func (r *recorder) live() (out []stat.LiveLatency) {
	for i := range r.stripes {
		stripe := r.stripes[i].live
		stripe.mu.Lock()
		for k, latency := range stripe.cells {
			if latency != nil {
				liveLatency := *latency
				liveLatency.Outcome = outcomes[k/maxTiers]
				liveLatency.Tier = r.tiers.name(uint8(k % maxTiers))
				out = added(out, []stat.LiveLatency{liveLatency})
			}
		}
		stripe.mu.Unlock()
	}
	return out
}
