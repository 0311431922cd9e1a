package results

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/stat"
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
			h.Record(bounds.MaxRecorded + 1)
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

// TestAllRoundsEnter: a round is left out of the timings of all strategies only if it did not
// happen as planned. Disturbed ones are in the figures, which are marked if they are more
// than a fifth.
func TestAllRoundsEnter(t *testing.T) {
	make := func(n int, change func(label string, n int, r *Run)) []Run {
		var runs []Run
		for i := range n {
			for _, label := range []string{"a", "b", "c", "d"} {
				r := round(i+1, 0, float64(1000+i))
				r.Params.Label = label
				r.ElapsedNS = 1e9
				change(label, i+1, &r)
				runs = append(runs, r)
			}
		}
		return runs
	}
	found := func(what, label string, upTo int) func(string, int, *Run) {
		return func(l string, n int, r *Run) {
			when((label == "" || l == label) && n <= upTo, func() { r.Audit.Discard("x", what, "planted") })
		}
	}
	for name, c := range map[string]struct {
		runs   []Run
		timed  int
		marked string // the strategies whose figures are marked
	}{
		"nothing happened": {make(8, func(string, int, *Run) {}), 8, ""},
		"one strategy is slow": {make(8, func(l string, n int, r *Run) {
			r.ThroughputPerS /= float64(1 + n%3)
		}), 8, ""},
		"one in one round":            {make(8, found(codes.Disturbs, "b", 1)), 8, ""},
		"one in two rounds":           {make(8, found(codes.Disturbs, "b", 2)), 8, "b"},
		"all in all rounds":           {make(8, found(codes.Disturbs, "", 8)), 8, "abcd"},
		"all in two of 14":            {make(14, found(codes.Disturbs, "", 2)), 14, ""},
		"three of three":              {make(3, func(string, int, *Run) {}), 3, ""},
		"one of three is disturbed":   {make(3, found(codes.Disturbs, "", 1)), 3, "abcd"},
		"another reason":              {make(8, found(codes.DisturbsTimings, "c", 8)), 8, "c"},
		"one was interrupted":         {make(8, func(l string, n int, r *Run) { r.Partial = l == "c" && n == 8 }), 7, ""},
		"one was not as planned":      {make(8, found(codes.DiscardsRound, "c", 1)), 7, ""},
		"none was as planned":         {make(8, found(codes.DiscardsRound, "", 8)), 0, ""},
		"a note":                      {make(8, found(codes.DiscardsNothing, "", 8)), 8, ""},
		"decisions that do not count": {make(8, found(codes.DiscardsCorrectness, "", 8)), 8, ""},
	} {
		for _, s := range Summarise(c.runs) {
			marked := strings.Contains(c.marked, s.Label)
			if s.Timed != c.timed || s.Throughput.Rounds != c.timed || s.Throughput.Disturbed != marked ||
				s.Service.P99.Disturbed != marked {
				t.Errorf("%s: %s has %d rounds, %+v", name, s.Label, s.Timed, s.Throughput)
			}
		}
	}
}

// TestOthersShare: what other programs used is the mean over the rounds behind the timings.
func TestOthersShare(t *testing.T) {
	var runs []Run
	for i, share := range []float64{0.5, 0.9, 0.7} {
		r := round(i+1, 0, 1000)
		r.OthersShare = share
		runs = append(runs, r)
	}
	if s := one(t, runs...); math.Abs(s.OthersShare-0.7) > 1e-12 {
		t.Errorf("other programs used %g, want 0.7", s.OthersShare)
	}
}

func when(condition bool, do func()) {
	if condition {
		do()
	}
}

// TestFasterThanBare: a throughput that cannot be is marked.
func TestFasterThanBare(t *testing.T) {
	for name, c := range map[string]struct {
		ratio, commands float64
		possible        bool
	}{
		"as fast":         {1.04, 1, true},
		"faster":          {1.2, 1, false},
		"no command each": {1.2, 0.9, true},
	} {
		var runs []Run
		for i := range 8 {
			r := round(i+1, 0, 1000*c.ratio)
			r.ReferencePerS = 1000 + float64(i)
			r.Cost.Commands = c.commands
			runs = append(runs, r)
		}
		s := one(t, runs...)
		if s.Audit.Has("faster-than-bare") == c.possible || s.Throughput.Disturbed == c.possible || s.Throughput.Rounds != 8 {
			t.Errorf("%s: %+v, %+v", name, s.Throughput, s.Audit.Reasons)
		}
	}
}
