package sim

import (
	"slices"
	"sync"

	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/results"
)

// Live can be asked how a simulation goes on, at any moment of real time and from any
// goroutine. Give one to [Config.Live]. What it tells does not change what happens.
type Live struct {
	mu      sync.Mutex
	figures []*LiveFigures
}

// LiveFigures are those of one strategy. All times are virtual.
type LiveFigures struct {
	// Strategy is its label, and Loop is "closed" or "open".
	Strategy, Loop string
	// Running is set until the run was judged.
	Running bool
	// Limit of the policy as the run began, in units.
	Limit int64
	// Sample is the state at this moment, with the counters of the last sample of the series:
	// none if none was taken yet.
	Sample results.Sample
	// Tiers that decided, in the order of Sample.Hits, and Counters in that of Sample.Counters.
	Tiers, Counters []string
	// StoreErrors counts requests that failed for lack of a store.
	StoreErrors int64
	// Latencies are modelled service times by outcome and tier.
	Latencies []stat.LiveLatency
	// Meter are the strategy's own figures.
	Meter []results.Measure
	// Judged is the run when it is over, without its histograms; nil until then.
	Judged *results.Run
}

// liveEvery is how many answers lie between two states that are shown.
const liveEvery = 1000

// begin adds a strategy, or begins anew with one that turned out to need another store.
func (l *Live) begin(run *results.Run) *LiveFigures {
	if l == nil {
		return nil
	}
	figures := &LiveFigures{Strategy: run.Params.Label, Loop: run.Params.Loop, Running: true, Limit: run.Params.Limit}
	l.told(figures)
	return figures
}

// told takes in the state of a strategy, e.g. of one that another process simulates.
func (l *Live) told(figures *LiveFigures) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(figures.Strategy); i >= 0 {
		l.figures[i] = figures
	} else {
		l.figures = append(l.figures, figures)
	}
}

// index of a strategy, or -1. The lock is held.
func (l *Live) index(strategy string) int {
	return slices.IndexFunc(l.figures, func(figures *LiveFigures) bool { return figures.Strategy == strategy })
}

// show replaces the state of a strategy; sample has counters if it is one of the series.
func (l *Live) show(d *drive, sample results.Sample, sampled bool) {
	figures := d.live
	if figures == nil {
		return
	}
	var latencies []stat.LiveLatency
	for key, latency := range d.liveParts {
		latency.Outcome = outcomeNames[key[0]]
		latency.Tier = string(d.tiers[key[1]])
		latencies = append(latencies, *latency)
	}
	meter := d.site.Meter()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !sampled {
		sample.Counters = figures.Sample.Counters
		sample.Keys = figures.Sample.Keys
	}
	figures.Sample = sample
	figures.Latencies = latencies
	figures.Meter = meter
	figures.Tiers = nil
	for _, tier := range d.tiers[1:] {
		figures.Tiers = append(figures.Tiers, string(tier))
	}
	figures.Counters = slices.Clone(d.series.out.Counters)
	figures.StoreErrors = d.counts.Errors.Store
}

// judged is told of the run when it is over.
func (l *Live) judged(run *results.Run) {
	if l == nil {
		return
	}
	kept := *run
	kept.Service = results.Latency{}
	kept.Response = nil
	kept.Settlement = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(run.Params.Label); i >= 0 {
		l.figures[i].Judged = &kept
		l.figures[i].Running = false
	}
}

// Figures are those at this moment, in the order in which strategies began.
func (l *Live) Figures() []LiveFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []LiveFigures
	for _, figures := range l.figures {
		out = append(out, *figures) // what it points to is replaced, and never written to
	}
	return out
}

// Progress is how far a simulation has come. Its zero value is one that has not begun.
// It may be read while the simulation goes on.
type Progress struct {
	mu     sync.Mutex
	shares []float64 // by strategy
}

// Share is the part of all strategies' requests, or of their virtual time, that has
// passed: 0 to 1.
func (p *Progress) Share() (sum float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shares {
		sum += s
	}
	return sum / float64(max(len(p.shares), 1))
}

func (p *Progress) begin(strategies int) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.shares = make([]float64, strategies)
	}
}

// unasked is the number of a strategy that nobody asks about.
const unasked = -1

// set says how far a strategy has come.
func (p *Progress) set(strategy int, share float64) {
	if p != nil && strategy != unasked {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.shares[strategy] = share
	}
}

// tell says how far the strategy has come, now and then.
func (d *drive) tell() {
	const every = 256 // requests
	if d.next%every != 0 {
		return
	}
	share := float64(d.next) / float64(d.requests)
	if d.cfg.Duration > 0 {
		share = max(share, float64(d.now()-d.epoch)/float64(d.cfg.Duration))
	}
	d.cfg.Progress.set(d.number, min(share, 1))
}
