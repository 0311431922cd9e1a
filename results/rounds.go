package results

import (
	"math"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/stat"
)

// Figure is a quantity over several rounds. A percentile is that of all rounds' samples
// together, a throughput is the mean over rounds, and other quantities are medians.
type Figure struct {
	// Value over all rounds.
	Value float64 `json:"value"`
	// Lo is the lower end of a confidence interval over rounds if Coverage is not 0, else
	// that of the smallest round, or Value.
	Lo float64 `json:"lo"`
	// Hi is the upper end.
	Hi float64 `json:"hi"`
	// Coverage is the interval's confidence, about 0.95, or 0 if there are fewer than 6
	// rounds, which say nothing about how much figures vary.
	Coverage float64 `json:"coverage"`
	// Rounds that the figure was computed from; 0 means that there is no figure.
	Rounds int `json:"rounds"`
	// Disturbed is set on a timing if something else than the strategy had a part in more
	// than a fifth of the rounds.
	Disturbed bool `json:"disturbed,omitempty"`
}

// targetCoverage is what a confidence interval has to reach. Six rounds are the
// fewest whose extremes do: 1 - 2/2^6 = 0.969.
const targetCoverage = 0.95

// OverRounds is the median of one value per round. Its interval makes no assumption
// about how rounds are distributed, and none is computed within a round: those
// miss the spread between rounds, which is the larger part.
func OverRounds(values []float64) Figure {
	n := len(values)
	if n == 0 {
		return Figure{}
	}
	v := slices.Clone(values)
	slices.Sort(v)
	k, coverage := orderStatistics(n)
	return Figure{Value: stat.Median(v), Lo: v[k-1], Hi: v[n-k], Coverage: coverage, Rounds: n}
}

// orderStatistics returns the largest k for which the k-th smallest and the k-th
// largest of n values enclose the median with at least the target coverage,
// and that coverage. Without such a k it returns 1 and 0.
func orderStatistics(n int) (k int, coverage float64) {
	k = 1
	p := math.Pow(0.5, float64(n)) // P(fewer than k values below the median), summed up below
	tail := p
	for j := 1; 2*j <= n; j++ {
		if c := 1 - 2*tail; c >= targetCoverage {
			k = j
			coverage = c
		}
		p *= float64(n-j+1) / float64(j)
		tail += p
	}
	return k, coverage
}

// Percentile is one point of a latency distribution, in nanoseconds.
type Percentile struct {
	Figure
	// Status says what Value is: a percentile if it is "pooled" or "per round", and the
	// largest value of all rounds if there are too few samples.
	Status codes.Status `json:"status"`
	// Waited counts the rounds in which waiting for a core could be the reason for most
	// of the moments behind the percentile. It is a mark: no round is left out for it.
	Waited int `json:"waited_rounds"`
}

// Shown reports whether Value is a percentile.
func (p Percentile) Shown() bool { return p.Status == codes.Pooled || p.Status == codes.PerRound }
