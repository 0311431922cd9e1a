package measure

import (
	"cmp"
	"slices"
	"sync"

	"github.com/quotabench/quotabench/results"
)

// Live can be asked how a measurement goes on, at any moment and from any goroutine.
// Give one to [Config.Live]. Latencies are those of the measured passes so far, the one
// under way included, but for the last few requests of each worker; all else is known
// when a run was judged.
type Live struct {
	mu       sync.Mutex
	figures  []*figures
	underWay *figures // nil between passes
	rec      *recorder
	tb       *timebase
	began    int64
}

// LiveBounds are the upper bounds of the classes of [LiveLatency.UpTo], in nanoseconds.
var LiveBounds = liveBounds()

const liveClasses = 21

// liveBounds are 1, 2 and 5 of every power of ten from 1 µs to 5 s.
func liveBounds() (out [liveClasses]int64) {
	i := 0
	for ten := int64(1_000); ten <= 1_000_000_000; ten *= 10 {
		for _, x := range []int64{1, 2, 5} {
			out[i] = x * ten
			i++
		}
	}
	return out
}

// LiveLatency is the service time of one outcome at one tier.
type LiveLatency struct {
	// Outcome is "admitted", "rejected" or "error", and Tier is what decided.
	Outcome, Tier string
	// UpTo counts requests by their class: those of at most [LiveBounds] and above the
	// bound before.
	UpTo [liveClasses]int64
	// Count is all of them, the longer ones included.
	Count int64
	// SumNS is the sum in nanoseconds.
	SumNS int64
}

func (l *LiveLatency) add(ns int64) {
	if i, _ := slices.BinarySearch(LiveBounds[:], ns); i < liveClasses {
		l.UpTo[i]++
	}
	l.Count++
	l.SumNS += ns
}

func (l *LiveLatency) merge(o *LiveLatency) {
	for i := range l.UpTo {
		l.UpTo[i] += o.UpTo[i]
	}
	l.Count += o.Count
	l.SumNS += o.SumNS
}

// LiveFigures are those of one strategy in one kind of loop.
type LiveFigures struct {
	// Strategy is its label, and Loop is "closed" or "open".
	Strategy, Loop string
	// Round of the last run, from 1. Running is set while that is measured.
	Round   int
	Running bool
	// Latencies by outcome and tier, over all rounds so far.
	Latencies []LiveLatency
	// PerS is decisions per second in the run under way, or the last one.
	PerS float64
	// Judged holds the runs that are over, without their histograms.
	Judged []results.Run
}

// figures are what is kept of a strategy.
type figures struct {
	LiveFigures
	over []LiveLatency // of passes that are over
}

func (l *Live) of(strategy, loop string) *figures {
	for _, f := range l.figures {
		if f.Strategy == strategy && f.Loop == loop {
			return f
		}
	}
	f := &figures{LiveFigures: LiveFigures{Strategy: strategy, Loop: loop}}
	l.figures = append(l.figures, f)
	return f
}

// begin is told that a pass begins.
func (l *Live) begin(r *results.Run, rec *recorder, tb *timebase) {
	if l == nil {
		return
	}
	rec.watch()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay, l.rec, l.tb, l.began = l.of(r.Params.Label, r.Params.Loop), rec, tb, tb.nano()
	l.underWay.Round, l.underWay.Running = r.Repetition, true
}

// end is told that it is over, and whether all workers have returned.
func (l *Live) end(returned bool) {
	if l == nil {
		return
	}
	for i := range l.rec.stripes {
		if returned {
			l.rec.stripes[i].flush()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.underWay
	now := l.rec.live()
	f.PerS, f.over, f.Running = l.rate(now), added(f.over, now), false
	l.underWay, l.rec = nil, nil
}

// rate is decisions per second of the pass under way.
func (l *Live) rate(now []LiveLatency) float64 {
	n := int64(0)
	for i := range now {
		if now[i].Outcome != outcomes[2] {
			n += now[i].Count
		}
	}
	return float64(n) / (float64(max(l.tb.nano()-l.began, 1)) / 1e9)
}

// judged is told of a run that is over.
func (l *Live) judged(r *results.Run) {
	if l == nil {
		return
	}
	kept := *r
	kept.Service, kept.Response, kept.Settlement, kept.Waiting, kept.Paced = results.Latency{}, nil, nil, nil, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.of(r.Params.Label, r.Params.Loop)
	f.Judged = append(f.Judged, kept)
}

// Figures are those at this moment, in the order in which strategies first ran.
func (l *Live) Figures() []LiveFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []LiveFigures
	for _, f := range l.figures {
		x := f.LiveFigures
		x.Latencies, x.Judged = slices.Clone(f.over), slices.Clone(f.Judged)
		if f == l.underWay {
			now := l.rec.live()
			x.PerS, x.Latencies = l.rate(now), added(x.Latencies, now)
		}
		out = append(out, x)
	}
	return out
}

// added is all of both, by outcome and tier.
func added(all, more []LiveLatency) []LiveLatency {
	for i := range more {
		m := &more[i]
		k := slices.IndexFunc(all, func(x LiveLatency) bool { return x.Outcome == m.Outcome && x.Tier == m.Tier })
		if k < 0 {
			all, k = append(all, LiveLatency{Outcome: m.Outcome, Tier: m.Tier}), len(all)
		}
		all[k].merge(m)
	}
	slices.SortFunc(all, func(a, b LiveLatency) int {
		return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Tier, b.Tier))
	})
	return all
}

// liveStripe is what a stripe shows while it is written to. Its lock is taken once for
// several requests.
type liveStripe struct {
	mu    sync.Mutex
	cells [3 * maxTiers]*LiveLatency
}

// liveBatch is how many requests of a worker are not shown yet.
const liveBatch = 8

func (s *liveStripe) add(batch []sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range batch {
		if s.cells[b.slot] == nil {
			s.cells[b.slot] = new(LiveLatency)
		}
		s.cells[b.slot].add(b.ns)
	}
}

// watch has the recorder show what it records.
func (r *recorder) watch() {
	for i := range r.stripes {
		r.stripes[i].live = new(liveStripe)
	}
}

// live is what a watched recorder shows.
func (r *recorder) live() (out []LiveLatency) {
	for i := range r.stripes {
		s := r.stripes[i].live
		s.mu.Lock()
		for k, c := range s.cells {
			if c != nil {
				x := *c
				x.Outcome, x.Tier = outcomes[k/maxTiers], r.tiers.name(uint8(k%maxTiers))
				out = added(out, []LiveLatency{x})
			}
		}
		s.mu.Unlock()
	}
	return out
}
