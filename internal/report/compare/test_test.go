package compare

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/stat"
)

// TestExactAgainstEnumeration checks the probabilities against all ways to divide the
// values among two sides, with and without ties.
func TestExactAgainstEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		n := 1 + rng.IntN(6)
		m := 1 + rng.IntN(6)
		values := make([]float64, n+m)
		for i := range values {
			values[i] = rng.Float64()
			if trial%2 == 0 {
				values[i] = float64(rng.IntN(4))
			}
		}
		got := less(values[:n], values[n:])
		want := enumerated(values, n)
		if math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v and %v: p %g, want %g", values[:n], values[n:], got, want)
		}
	}
}

// enumerated is the share of divisions in which the first side is at least that much
// smaller.
func enumerated(values []float64, n int) float64 {
	pairs := func(mask uint) (larger float64) {
		for i, x := range values {
			for j, y := range values {
				if mask>>i&1 == 1 && mask>>j&1 == 0 {
					switch {
					case x > y:
						larger++
					case x == y:
						larger += 0.5
					}
				}
			}
		}
		return larger
	}
	observed := pairs(1<<n - 1)
	extreme := 0
	all := 0
	for mask := range uint(1) << len(values) {
		if bits.OnesCount(mask) != n {
			continue
		}
		all++
		if pairs(mask) <= observed+1e-9 {
			extreme++
		}
	}
	return float64(extreme) / float64(all)
}

// TestCriticalU: at the critical number of pairs the test shows a worsening, and at the
// next one it does not.
func TestCriticalU(t *testing.T) {
	for _, c := range []struct {
		n     int
		alpha float64
		want  float64
	}{{3, 0.005, -1}, {5, 0.005, 0}, {10, 0.005, 16}, {10, 0.005 / 20, 7}, {10, 1e-7, -1}} {
		if got := criticalU(c.n, c.n, c.alpha); got != c.want {
			t.Errorf("%d rounds at %g: %g, want %g", c.n, c.alpha, got, c.want)
		}
	}
	// The normal distribution goes on where the exact one ends.
	exact := criticalU(50, 50, 0.005)
	normal := criticalU(51, 51, 0.005)
	if d := normal - exact; d < 0 || d > 50 {
		t.Errorf("50 rounds: %g, 51: %g", exact, normal)
	}
}

// TestSmallestIsWhatIsDetected: of worsenings of that size 95 of 100 are shown.
func TestSmallestIsWhatIsDetected(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	rounds := func(by float64) []float64 {
		out := make([]float64, 10)
		for i := range out {
			out[i] = by * math.Exp(0.03*rng.NormFloat64())
		}
		return out
	}
	var smallest []float64
	for range 40 {
		smallest = append(smallest, Standard.Test(rounds(1), rounds(1), 0.005, stat.Median[float64]).Smallest)
	}
	by := stat.Median(smallest)
	shown := 0
	for range 1000 {
		if _, ok := Standard.shown(rounds(1), rounds(1+by), 0.005, stat.Median[float64]); ok {
			shown++
		}
	}
	if shown < 920 || shown > 980 {
		t.Errorf("a worsening by %.3f is shown in %d of 1000 cases, want 950", by, shown)
	}
}
