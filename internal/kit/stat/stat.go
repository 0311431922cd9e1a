// Package stat holds what figures are computed with, wherever they are computed and shown.
package stat

import (
	"math"
	"slices"
	"time"
)

// Mean of values; 0 for none.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(max(len(values), 1))
}

// Sum adds two numbers. It is the largest or the smallest number where the sum is beyond it.
func Sum(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// Median of values; 0 for none.
func Median[N int64 | float64](values []N) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return float64(v[(n-1)/2])/2 + float64(v[n/2])/2
}

// RateBound is the largest share of trials that may leak, with 95 % confidence,
// given that none of n did: the rule of three. It is 1 if n is below 3.
func RateBound(n int64) float64 {
	if n < 3 {
		return 1
	}
	return 3 / float64(n)
}

// MinSamples is how many samples it takes for the largest to lie above the
// quantile q in 97.5 % of cases: 368 for p99, 3,688 for p99.9, 36,888 for p99.99.
func MinSamples(q float64) int64 { return int64(-math.Log(0.025) / (1 - q)) }

// StallGap is the silence in nanoseconds after which a slow operation belongs to
// another stall.
const StallGap = int64(10 * time.Millisecond)

// Stalls counts the separate events behind slow operations that began at the
// given moments, in nanoseconds and ascending. A thousand slow operations
// during one pause of the machine are one event, and say nothing of how often
// such pauses come.
func Stalls(moments []int64) int {
	n := 0
	for i, m := range moments {
		if i == 0 || m-moments[i-1] > StallGap {
			n++
		}
	}
	return n
}

// perNine is how many points a latency curve has for each factor of ten in the
// share of requests that take longer.
const perNine = 24

// NamedQuantiles are the quantiles that reports show.
var NamedQuantiles = []float64{0.5, 0.9, 0.99, 0.999, 0.9999}

// Nines is the coordinate of the percentile axis: each further nine takes the
// same room.
func Nines(q float64) float64 { return -math.Log10(1 - q) }

// CurveQuantiles are the quantiles of a latency curve: those that reports
// show, and others between them.
func CurveQuantiles() []float64 {
	var out []float64
	for i, q := range NamedQuantiles {
		if i > 0 {
			from := Nines(NamedQuantiles[i-1])
			to := Nines(q)
			steps := int(math.Ceil((to - from) * perNine))
			for j := 1; j < steps; j++ {
				out = append(out, 1-math.Pow(10, -(from+(to-from)*float64(j)/float64(steps))))
			}
		}
		out = append(out, q)
	}
	return out
}
