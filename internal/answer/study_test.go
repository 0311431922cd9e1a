package answer_test

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/stat"
	"github.com/quotabench/quotabench/internal/testenv"
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
	busy    bool    // other programs slow two rounds down, and the monitor sees them
}

var worlds = []world{
	{name: "heavy tails", tail: 1, between: 0.1, own: 0.05},
	{name: "stalls", tail: 0.5, between: 0.1, own: 0.05, stalls: 0.005},
	{name: "drift", tail: 0.5, between: 0.05, own: 0.05, drift: 0.3},
	{name: "a busy phase", tail: 0.5, between: 0.1, own: 0.05, busy: true},
}

// looks are the rounds at which the study looks, as a run does.
var looks = []int{answer.FirstLook, answer.LastLook}

// perRound is how many requests the open loop of a round has at least.
const perRound = 200

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

// truth is the p99 of very many rounds up to the given one.
func (w *world) truth(scale float64, rounds int) float64 {
	rng, h := rand.New(rand.NewPCG(7, 8)), results.NewHistogram()
	for i := range 8000 {
		w.latencies(rng, h, scale*w.factor(rng, i%rounds))
	}
	return float64(h.Quantile(0.99))
}

// rounds makes the runs of three strategies, of which the last takes twice as long.
func (w *world) rounds(t *testing.T, rng *rand.Rand, h *results.Histogram) (runs []results.Run) {
	busy := looks[1]
	if w.busy {
		busy = rng.IntN(looks[0])
	}
	for i := range looks[1] {
		f := w.factor(rng, i)
		for k, label := range []string{"a", "b", "slow"} {
			h.Reset()
			scale := 1e5 * f
			disturbed := i == busy || i == busy+1
			if disturbed {
				scale *= 1 + 4*rng.Float64()
			}
			all := w.latencies(rng, h, scale*float64(1+k/2))
			l, err := h.Latency()
			if err != nil {
				t.Fatal(err)
			}
			l.StallsP99, l.StallsP999 = stalls(all, l.P99), stalls(all, l.P999)
			r := planted(label, nil)
			r.Repetition, r.Params.Loop, r.Params.RatePerS, r.Service, r.Response = i+1, results.OpenLoop, 1000, results.Latency{}, &l
			if disturbed {
				r.Audit.Discard("machine-busy", results.Disturbs, "planted")
			}
			runs = append(runs, r)
		}
	}
	return runs
}

// TestStudyOfRounds: of 200 measurements on machines that disturb them, the interval of
// the p99, if it is shown, covers the truth in at least 93 %, equal strategies are put in order in at most
// 5 %, and one that takes twice as long is found in at least 95 %. The measurement looks at
// 8 rounds, and at 12 if those do not put all in order.
func TestStudyOfRounds(t *testing.T) {
	testenv.Long(t)
	testenv.Sequential(t)
	const sets = 200
	var shown, covered, ordered, found, early atomic.Int64
	t.Run("worlds", func(t *testing.T) {
		for i := range worlds {
			w := &worlds[i]
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				rng, h := rand.New(rand.NewPCG(9, uint64(i))), results.NewHistogram()
				truth := map[int]float64{}
				for _, n := range looks {
					truth[n] = w.truth(1e5, n)
				}
				var c, o, f int64
				for range sets / len(worlds) {
					runs := w.rounds(t, rng, h)
					n := looks[0]
					s := answer.Of(results.File{Kind: results.Measured, Runs: runs[:3*n]})[0]
					if s.Decided() {
						early.Add(1)
					} else {
						n = looks[1]
						s = answer.Of(results.File{Kind: results.Measured, Runs: runs})[0]
					}
					place := map[string]int{}
					for _, x := range s.Strategies {
						place[x.Label] = x.Place
						if p := x.Summary.Latency().P99; x.Label == "a" && p.Shown() {
							shown.Add(1)
							if p.Lo <= truth[n] && truth[n] <= p.Hi {
								c++
							}
						}
					}
					if place["a"] != place["b"] {
						o++
					}
					if place["slow"] > place["a"] && place["slow"] > place["b"] {
						f++
					}
				}
				covered.Add(c)
				ordered.Add(o)
				found.Add(f)
				t.Logf("covered %d, equal ones in order %d, twice as slow found %d of %d", c, o, f, sets/len(worlds))
			})
		}
	})
	t.Logf("ended at the first look: %d of %d", early.Load(), sets)
	if n := shown.Load(); covered.Load()*100 < n*93 || n < sets*75/100 {
		t.Errorf("the interval covers the truth in %d of %d sets that show a p99, of %d in all", covered.Load(), n, sets)
	}
	if ordered.Load() > sets*5/100 {
		t.Errorf("equal strategies are put in order in %d of %d sets", ordered.Load(), sets)
	}
	if found.Load() < sets*95/100 {
		t.Errorf("a strategy that takes twice as long is found in %d of %d sets", found.Load(), sets)
	}
}
