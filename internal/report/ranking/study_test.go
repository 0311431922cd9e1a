package ranking_test

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// world is what a machine does to the rounds of a measurement.
type world struct {
	name    string
	tail    float64 // spread of latencies within a round, as a logarithm
	between float64 // spread of whole rounds, shared by all strategies
	own     float64 // spread of whole rounds, of each strategy by itself
	stalls  float64 // share of requests in pauses
	drift   float64 // growth of latencies from the first round to the last, as a logarithm
	busy    bool    // other programs slow half of the rounds down, and the monitor sees them
}

var worlds = []world{
	{name: "heavy tails", tail: 1, between: 0.1, own: 0.05},
	{name: "stalls", tail: 0.5, between: 0.1, own: 0.05, stalls: 0.005},
	{name: "drift", tail: 0.5, between: 0.05, own: 0.05, drift: 0.3},
	{name: "a busy phase", tail: 0.5, between: 0.1, own: 0.05, busy: true},
}

// looks are the rounds at which the study looks, as a run does.
var looks = []int{ranking.FirstLook, ranking.LastLook}

// perRound is how many requests the open loop of a round has at least: all rounds together are
// to have enough for a p99 at the first look.
const perRound = 60

// held is how many requests a pause holds up. Pauses so rare that most measurements of this
// length see none are in no interval.
const held = 4

// latencies of one round, in nanoseconds.
func (w *world) latencies(rng *rand.Rand, h *results.Histogram, scale float64) (all []int64) {
	scale *= math.Exp(w.own * rng.NormFloat64())
	for len(all) < perRound {
		x := scale * math.Exp(w.tail*rng.NormFloat64())
		if rng.Float64() < w.stalls/held {
			pause := 20 * scale * math.Exp(rng.NormFloat64())
			for range held - 1 {
				all = append(all, int64(x+pause*rng.Float64()))
			}
		}
		all = append(all, int64(x))
	}
	for _, v := range all {
		h.Record(v)
	}
	return all
}

// stalls counts the events behind the slowest percent of requests, of which there is one each
// millisecond.
func stalls(all []int64, p99 int64) int {
	var moments []int64
	for i, v := range all {
		if v >= p99 {
			moments = append(moments, int64(i)*int64(time.Millisecond))
		}
	}
	return stat.Stalls(moments)
}

// factor is what the machine does to the round, except for what the monitor sees.
func (w *world) factor(rng *rand.Rand, round int) float64 {
	return math.Exp(w.between*rng.NormFloat64() + w.drift*(float64(round)/float64(looks[1]-1)-0.5))
}

// slowed is by what other programs multiply latencies in a round.
func slowed(rng *rand.Rand) float64 { return 1 + 4*rng.Float64() }

// truths are the figures of very many measurements: p50 and p99 in nanoseconds, and decisions
// per second.
type truths struct{ p50, p99, perS float64 }

// truth is that of measurements of so many rounds, of which some were busy.
func (w *world) truth(rounds, busy int) truths {
	rng := rand.New(rand.NewPCG(7, 8))
	h := results.NewHistogram()
	sum := 0.0
	const measurements = 800
	for range measurements {
		for i := range rounds {
			scale := studyScale * w.factor(rng, i)
			if i < busy {
				scale *= slowed(rng)
			}
			w.latencies(rng, h, scale)
			sum += w.perSecond(rng, scale)
		}
	}
	return truths{p50: float64(h.Quantile(0.5)), p99: float64(h.Quantile(0.99)), perS: sum / float64(measurements*rounds)}
}

// studyScale is the usual latency, in nanoseconds.
const studyScale = 1e5

// perSecond is the throughput of a round whose latencies are of that scale.
func (w *world) perSecond(rng *rand.Rand, scale float64) float64 {
	return 1e9 / (scale * math.Exp(w.own*rng.NormFloat64()))
}

// rounds makes the runs of three strategies, of which the last takes twice as long. busy reports
// how many of the first rounds were busy.
func (w *world) rounds(t *testing.T, rng *rand.Rand,
	h *results.Histogram) (runs []results.Run, busy func(rounds int) int) {
	from := 0
	to := 0
	if w.busy {
		from = rng.IntN(looks[1]/2 + 1)
		to = from + looks[1]/2
	}
	for i := range looks[1] {
		f := w.factor(rng, i)
		for k, label := range []string{"a", "b", "slow"} {
			h.Reset()
			scale := studyScale * f * float64(1+k/2)
			disturbed := i >= from && i < to
			if disturbed {
				scale *= slowed(rng)
			}
			all := w.latencies(rng, h, scale)
			l, err := h.Latency()
			if err != nil {
				t.Fatal(err)
			}
			l.StallsP99, l.StallsP999 = stalls(all, l.P99), stalls(all, l.P999)
			r := planted(label, nil)
			r.Repetition = i + 1
			r.Params.Loop = codes.OpenLoop
			r.Params.RatePerS = 1000
			r.Service = results.Latency{}
			r.Response = &l
			r.ThroughputPerS = w.perSecond(rng, scale)
			if disturbed {
				r.Audit.Discard("machine-busy", codes.Disturbs, "planted")
			}
			runs = append(runs, r)
		}
	}
	return runs, func(rounds int) int { return max(0, min(to, rounds)-from) }
}

// covers counts the figures of which the interval has the truth.
type covers struct{ shown, p50, p99, perS atomic.Int64 }

func (c *covers) add(s *results.Summary, truth truths) {
	in := func(n *atomic.Int64, f results.Figure, x float64) {
		if f.Lo <= x && x <= f.Hi {
			n.Add(1)
		}
	}
	l := s.Latency()
	if !l.P99.Shown() {
		return
	}
	c.shown.Add(1)
	in(&c.p50, l.P50.Figure, truth.p50)
	in(&c.p99, l.P99.Figure, truth.p99)
	in(&c.perS, s.Throughput, truth.perS)
}

// TestStudyOfRounds: of 200 measurements on machines that disturb them, the intervals of p50, p99
// and throughput cover the truth in at least 93 %, equal strategies are put in order in at most
// 5 %, and one that takes twice as long is found in at least 95 %. The measurement looks after
// half of its rounds, and after all of them if those do not put all in order.
func TestStudyOfRounds(t *testing.T) {
	testenv.Long(t)
	testenv.Sequential(t)
	const sets = 200
	var all covers
	var ordered, found, early atomic.Int64
	t.Run("worlds", func(t *testing.T) {
		for i := range worlds {
			w := &worlds[i]
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(9, uint64(i)))
				h := results.NewHistogram()
				truth := map[[2]int]truths{}
				var own covers
				var o, f int64
				for range sets / len(worlds) {
					runs, busy := w.rounds(t, rng, h)
					n := looks[0]
					s := ranking.Of(results.File{Kind: results.Measured, Runs: runs[:3*n]})[0]
					if s.Decided() {
						early.Add(1)
					} else {
						n = looks[1]
						s = ranking.Of(results.File{Kind: results.Measured, Runs: runs})[0]
					}
					at := [2]int{n, busy(n)}
					if _, known := truth[at]; !known {
						truth[at] = w.truth(at[0], at[1])
					}
					place := map[string]int{}
					for _, x := range s.Strategies {
						place[x.Label] = x.Place
						if x.Label == "a" {
							all.add(x.Summary, truth[at])
							own.add(x.Summary, truth[at])
						}
					}
					if place["a"] != place["b"] {
						o++
					}
					if place["slow"] > place["a"] && place["slow"] > place["b"] {
						f++
					}
				}
				ordered.Add(o)
				found.Add(f)
				t.Logf("of %d: covered p50 %d, p99 %d, throughput %d; equal ones in order %d; twice as slow found %d",
					own.shown.Load(),
					own.p50.Load(), own.p99.Load(), own.perS.Load(), o, f)
			})
		}
	})
	t.Logf("ended at the first look: %d of %d", early.Load(), sets)
	n := all.shown.Load()
	if n < sets {
		t.Errorf("%d of %d sets have a p99", n, sets)
	}
	for name, covered := range map[string]*atomic.Int64{"p50": &all.p50, "p99": &all.p99, "throughput": &all.perS} {
		if covered.Load()*100 < n*93 {
			t.Errorf("the interval of %s covers the truth in %d of %d sets", name, covered.Load(), n)
		}
	}
	if ordered.Load() > sets*5/100 {
		t.Errorf("equal strategies are put in order in %d of %d sets", ordered.Load(), sets)
	}
	if found.Load() < sets*95/100 {
		t.Errorf("a strategy that takes twice as long is found in %d of %d sets", found.Load(), sets)
	}
}
