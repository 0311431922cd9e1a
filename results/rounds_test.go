package results

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/stat"
)

// coverageOf counts, over all ways in which n values can fall below or above
// their median, those whose k-th smallest and k-th largest enclose it.
func coverageOf(n, k int) float64 {
	hit := 0
	for below := range 1 << n {
		if b := bits.OnesCount(uint(below)); b >= k && b <= n-k {
			hit++
		}
	}
	return float64(hit) / float64(int(1)<<n)
}

func TestOrderStatistics(t *testing.T) {
	for n := 1; n <= 18; n++ {
		k, coverage := orderStatistics(n)
		want := 0
		for j := 1; 2*j <= n; j++ {
			if coverageOf(n, j) >= 0.95 {
				want = j
			}
		}
		switch {
		case want == 0 && (k != 1 || coverage != 0):
			t.Errorf("n %d: %d, %g; want a range", n, k, coverage)
		case want > 0 && (k != want || math.Abs(coverage-coverageOf(n, want)) > 1e-9):
			t.Errorf("n %d: %d, %g; want %d, %g", n, k, coverage, want, coverageOf(n, want))
		}
	}
	if _, coverage := orderStatistics(2_000); coverage < 0.95 || coverage > 1 {
		t.Errorf("2000 rounds: coverage %g", coverage)
	}
}

func TestOverRounds(t *testing.T) {
	in := []float64{10, 3, 7, 1, 9, 2, 8, 4, 6, 5}
	keep := slices.Clone(in)
	got := OverRounds(in)
	if got.Value != 5.5 || got.Lo != 2 || got.Hi != 9 || got.Rounds != 10 || math.Abs(got.Coverage-0.9785) > 1e-4 {
		t.Errorf("ten rounds: %+v", got)
	}
	if !slices.Equal(in, keep) {
		t.Error("the caller's values were reordered")
	}
	if got := OverRounds([]float64{4, 1, 3}); got != (Figure{Value: 3, Lo: 1, Hi: 4, Rounds: 3}) {
		t.Errorf("three rounds: %+v", got)
	}
	if got := OverRounds(nil); got != (Figure{}) {
		t.Errorf("no rounds: %+v", got)
	}
}

func TestMinSamples(t *testing.T) {
	for q, want := range map[float64]int64{0.99: 368, 0.999: 3_688, 0.9999: 36_888} {
		if got := stat.MinSamples(q); got != want {
			t.Errorf("quantile %g needs %d samples, want %d", q, got, want)
		}
	}
}
