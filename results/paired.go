package results

import (
	"cmp"
	"math"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/stat"
)

// difference compares two strategies round by round.
type difference struct {
	// Ratio of the first strategy's value to the second's: the Hodges-Lehmann estimate
	// over rounds. It is 0 if there are no common rounds.
	Ratio float64
	// P is the two-sided probability of a difference like this one between equal
	// strategies: an exact signed-rank test on the logarithms.
	P float64
	// Rounds in which both were measured.
	Rounds int
}

// minDifference is by how much two strategies must differ at least to be put in order. With
// stores on the same machine, a decision lacks the network, which takes several times as long
// as the rest. A smaller difference is then no reason to prefer the strategy that survives fewer faults.
const minDifference = 0.25

// Ordered reports whether the first strategy's value is smaller (-1) or larger (1) at the
// given level of significance, or whether the two cannot be told apart (0).
func (d difference) Ordered(level float64) int {
	switch {
	case d.P > level || d.Rounds < bounds.LeastRounds:
		return 0
	case d.Ratio < 1-minDifference:
		return -1
	case d.Ratio > 1/(1-minDifference):
		return 1
	}
	return 0
}

// Compare returns the difference from another strategy in one figure of the rounds behind
// their timings. Rounds that only one of them has are left out, and strategies that were
// summarised apart have no rounds in common.
func (s *Summary) Compare(other *Summary, figure func(Timing) float64) difference {
	if s.measured != other.measured {
		return difference{P: 1}
	}
	var logs []float64
	for n, timing := range s.each {
		if y, ok := other.each[n]; ok && figure(timing) > 0 && figure(y) > 0 {
			logs = append(logs, math.Log(figure(timing)/figure(y)))
		}
	}
	if len(logs) == 0 {
		return difference{P: 1}
	}
	slices.Sort(logs) // the order of a map is random
	var walsh []float64
	for i, value := range logs {
		for _, y := range logs[i:] {
			walsh = append(walsh, (value+y)/2)
		}
	}
	return difference{Ratio: math.Exp(stat.Median(walsh)), P: signedRank(logs), Rounds: len(logs)}
}

// signedRank is the two-sided p-value of Wilcoxon's signed-rank test, from the exact
// distribution over all signs. Zeros keep half of their rank on each side, and ties have
// mean ranks.
func signedRank(values []float64) float64 {
	n := len(values)
	slices.SortFunc(values, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	// Doubled mean ranks are whole numbers.
	ranks := make([]int, n)
	for i := 0; i < n; {
		j := i
		for j < n && math.Abs(values[j]) == math.Abs(values[i]) {
			j++
		}
		for k := i; k < j; k++ {
			ranks[k] = i + 1 + j
		}
		i = j
	}
	sum := 0
	most := n * (n + 1) // of doubled ranks
	for i, value := range values {
		switch {
		case value > 0:
			sum += ranks[i]
		case value == 0:
			sum += ranks[i] / 2
		}
	}
	ways := make([]float64, most+1)
	ways[0] = 1
	for _, r := range ranks {
		for s := most; s >= r; s-- {
			ways[s] += ways[s-r]
		}
	}
	low := min(sum, most-sum)
	tail := 0.0
	for s := 0; s <= low; s++ {
		tail += ways[s]
	}
	return min(1, 2*tail/math.Exp2(float64(n)))
}
