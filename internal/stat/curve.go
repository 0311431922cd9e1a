package stat

import "math"

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
			from, to := Nines(NamedQuantiles[i-1]), Nines(q)
			steps := int(math.Ceil((to - from) * perNine))
			for j := 1; j < steps; j++ {
				out = append(out, 1-math.Pow(10, -(from+(to-from)*float64(j)/float64(steps))))
			}
		}
		out = append(out, q)
	}
	return out
}
