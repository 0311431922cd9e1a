package results

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quotabench/quotabench/internal/stat"
)

// TestPoolIsTheMergedHistogram: each quantile of a pool is that of all samples together,
// values out of range included.
func TestPoolIsTheMergedHistogram(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	merged := NewHistogram()
	var rounds []*Latency
	for n := range 5 {
		h := NewHistogram()
		for range 200 * (n + 1) {
			h.Record(int64(math.Exp(25 * rng.Float64())))
		}
		if n == 2 {
			h.Record(MaxDuration + 1)
		}
		merged.Merge(h)
		l := must[Latency](t)(h.Latency())
		rounds = append(rounds, &l)
	}
	p := newPool(rounds)
	for _, q := range append(stat.CurveQuantiles(), 0.001, 1) {
		if got, want := p.quantile(q, nil), merged.Quantile(q); got != want {
			t.Errorf("quantile %g is %d, want %d", q, got, want)
		}
	}
	if got, want := p.quantile(0.9, []int64{0, 3, 0, 0, 0}), rounds[1].P90; got != want {
		t.Errorf("three times one round: %d, want %d", got, want)
	}
}

// TestRoundsAreLeftOutWhole: a disturbed round leaves the timings of all strategies, a
// slow one stays, and what remains must be enough.
func TestRoundsAreLeftOutWhole(t *testing.T) {
	make := func(n int, change func(label string, n int, r *Run)) []Run {
		var runs []Run
		for i := range n {
			for _, label := range []string{"a", "b", "c", "d"} {
				r := round(i+1, 0, float64(1000+i))
				r.Params.Label, r.ElapsedNS = label, 1e9
				change(label, i+1, &r)
				runs = append(runs, r)
			}
		}
		return runs
	}
	discard := func(r *Run, what string) { r.Audit.Discard("x", what, "planted") }
	for name, c := range map[string]struct {
		runs   []Run
		timed  int
		counts bool
	}{
		"nothing happened":      {make(8, func(string, int, *Run) {}), 8, true},
		"one strategy is slow":  {make(8, func(l string, n int, r *Run) { r.ThroughputPerS /= float64(1 + n%3) }), 8, true},
		"a quarter of 2 rounds": {make(8, func(l string, n int, r *Run) { when(l == "b" && n < 3, func() { discard(r, DiscardsRound) }) }), 6, true},
		"a quarter of 3 rounds": {make(8, func(l string, n int, r *Run) { when(l == "b" && n < 4, func() { discard(r, DiscardsRound) }) }), 5, false},
		"a fifth of the time":   {make(8, func(l string, n int, r *Run) { when(l == "b", func() { discard(r, DiscardsRound); r.ElapsedNS = 7e8 }) }), 8, true},
		"7 of 14 rounds":        {make(14, func(l string, n int, r *Run) { when(n <= 7, func() { discard(r, DiscardsRound) }) }), 7, true},
		"8 of 14 rounds":        {make(14, func(l string, n int, r *Run) { when(n <= 8, func() { discard(r, DiscardsRound) }) }), 6, false},
		"three of three":        {make(3, func(string, int, *Run) {}), 3, true},
		"two of three":          {make(3, func(l string, n int, r *Run) { when(n == 1, func() { discard(r, DiscardsRound) }) }), 2, false},
		"one was interrupted":   {make(8, func(l string, n int, r *Run) { r.Partial = l == "c" && n == 8 }), 7, true},
		"a note":                {make(8, func(l string, n int, r *Run) { discard(r, DiscardsNothing) }), 8, true},
	} {
		all := Summarise(c.runs)
		for _, s := range all {
			if s.Timed != c.timed || s.TimingsCount != c.counts || (s.Throughput.Rounds > 0) != c.counts {
				t.Errorf("%s: %s has %d rounds, which count: %t, %+v", name, s.Label, s.Timed, s.TimingsCount, s.Throughput)
			}
		}
	}
	// A finding about one strategy takes its timings back, and no other's.
	all := Summarise(make(8, func(l string, n int, r *Run) { when(l == "b", func() { discard(r, DiscardsTimings) }) }))
	for _, s := range all {
		if s.TimingsCount != (s.Label != "b") {
			t.Errorf("%s: timings count: %t", s.Label, s.TimingsCount)
		}
	}
}

func when(condition bool, do func()) {
	if condition {
		do()
	}
}

// TestFasterThanBare: a throughput that cannot be takes the timings back.
func TestFasterThanBare(t *testing.T) {
	for name, c := range map[string]struct {
		ratio, commands float64
		client          string
		counts          bool
	}{
		"as fast":         {1.04, 1, "", true},
		"faster":          {1.2, 1, "", false},
		"no command each": {1.2, 0.9, "", true},
		"pipelines":       {1.2, 1, "autopipeline", true},
	} {
		var runs []Run
		for i := range 8 {
			r := round(i+1, 0, 1000*c.ratio)
			r.ReferencePerS, r.Cost.Commands, r.Params.Client = 1000+float64(i), c.commands, c.client
			runs = append(runs, r)
		}
		s := one(t, runs...)
		if s.TimingsCount != c.counts || s.Audit.Has("faster-than-bare") == c.counts || (s.Throughput.Rounds == 8) != c.counts {
			t.Errorf("%s: counts %t, %+v, %+v", name, s.TimingsCount, s.Throughput, s.Audit.Reasons)
		}
	}
}
