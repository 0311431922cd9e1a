package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/aclements/go-moremath/stats"
)

// Rule decides about a figure that varies from round to round.
type Rule struct {
	// Alpha is the share of comparisons of unchanged code that may fail. All samples
	// that are gated in one comparison share it.
	Alpha float64
	// AtLeast is the smallest relative worsening that counts.
	AtLeast float64
	// Promised is the relative worsening that a pass excludes: if the rounds could
	// not have shown it, the answer is [Inconclusive].
	Promised float64
	// Tolerated is the relative worsening that a figure may have.
	Tolerated float64
	// Each is set if every figure has Alpha for itself, and shares it with none.
	Each bool
}

// Standard is the rule unless another is given. Its false alarms and what it detects
// are in docs/comparing.md.
var Standard = Rule{Alpha: 0.005, AtLeast: 0.03, Promised: 0.10}

// Test is the one-sided Mann-Whitney test of the rounds. It is exact up to 50 rounds a
// side, and up to 25 if values are equal; beyond, by the normal distribution.
type Test struct {
	// BaseRounds of the base that count.
	BaseRounds int `json:"base_rounds"`
	// HeadRounds of the head that count.
	HeadRounds int `json:"head_rounds"`
	// P is how likely unchanged code shows at least such a worsening.
	P float64 `json:"p"`
	// Alpha is what P may be at most for a worsening.
	Alpha float64 `json:"alpha"`
	// Change of the middle of the rounds, relative to the base; positive is worse. It is
	// 0 if the base is.
	Change float64 `json:"change"`
	// Smallest is the smallest relative worsening that such rounds show in 95 of 100
	// cases; 0 if they would not even show one of tenfold.
	Smallest float64 `json:"smallest"`
	// Shown is set if the rounds show a worsening.
	Shown bool `json:"shown"`
	// Reverse is set if they show an improvement by the same rule.
	Reverse bool `json:"reverse"`
}

// Test compares rounds of a cost, of which more is worse and none is negative. The
// middle is that of a leak's mean, since most rounds may have none, and of the median
// otherwise.
func (r Rule) Test(base, head []float64, alpha float64, middle func([]float64) float64) Test {
	test := Test{BaseRounds: len(base), HeadRounds: len(head), Alpha: alpha, P: 1}
	if len(base) == 0 || len(head) == 0 {
		return test
	}
	if b := middle(base); b > 0 {
		test.Change = middle(head)/b - 1
	}
	test.P, test.Shown = r.shown(base, head, alpha, middle)
	untolerated := r
	untolerated.Tolerated = 0
	_, test.Reverse = untolerated.shown(head, base, alpha, middle)
	test.Smallest = r.smallest(base, head, alpha, middle)
	return test
}

// beyond is the rule for a cost that may rise by a share of the base.
func (r Rule) beyond(share float64) Rule {
	r.Tolerated = share
	r.Promised = (1+r.Tolerated)*(1+r.Promised) - 1
	return r
}

// shown reports whether the head is worse by the rule, and how likely that is of code that is as bad as is tolerated.
func (r Rule) shown(base, head []float64, alpha float64, middle func([]float64) float64) (p float64, shown bool) {
	if r.Tolerated > 0 {
		worst := make([]float64, len(base))
		for i, value := range base {
			worst[i] = value * (1 + r.Tolerated)
		}
		p = less(worst, head)
		return p, p <= alpha && middle(head) > middle(worst)
	}
	b := middle(base)
	h := middle(head)
	p = less(base, head)
	return p, p <= alpha && h > b && h >= b*(1+r.AtLeast)
}

// less is how likely a sample is that much smaller than b if there is no difference.
func less(a, b []float64) float64 {
	result, err := stats.MannWhitneyUTest(a, b, stats.LocationLess)
	if err != nil { // all are equal
		return 1
	}
	return result.P
}

// resamples is how many pairs of rounds the smallest worsening is read from.
const resamples = 200

// smallest draws rounds without a difference from those that there are, and looks for
// the worsening of one side that the rule shows in 95 % of the draws.
func (r Rule) smallest(base, head []float64, alpha float64, middle func([]float64) float64) float64 {
	pool := spread(base, head, middle)
	critical := criticalU(len(base), len(head), alpha)
	if len(pool) == 0 || critical < 0 {
		return 0
	}
	rng := rand.New(rand.NewPCG(uint64(len(base)), uint64(len(head)))) // the same rounds have the same answer
	needed := make([]float64, resamples)
	values := make([]float64, len(base))
	b := make([]float64, len(head))
	worse := make([]float64, len(head))
	for i := range needed {
		draw(rng, pool, values)
		draw(rng, pool, b)
		before := middle(values)
		after := middle(b)
		shows := func(times float64) bool {
			if after*times <= before || after*times < before*(1+r.AtLeast) {
				return false
			}
			for j, value := range b {
				worse[j] = value * times
			}
			return u(values, worse) <= critical
		}
		needed[i] = leastFactor(shows) - 1
	}
	slices.Sort(needed)
	if s := needed[resamples*95/100-1]; !math.IsInf(s, 1) {
		return s
	}
	return 0
}

// spread is how the rounds of both sides differ from the middle of their side, as factors. Rounds lie closer to their
// own middle than to that of all rounds there could be.
func spread(base, head []float64, middle func([]float64) float64) (factors []float64) {
	rounds := float64(len(base) + len(head))
	wider := math.Sqrt(rounds / max(1, rounds-2))
	for _, side := range [][]float64{base, head} {
		at := middle(side)
		for _, value := range side {
			if at > 0 {
				factors = append(factors, max(0, 1+(value/at-1)*wider))
			}
		}
	}
	return factors
}

// mostFactor is by how much something becomes worse at most, as a factor.
const mostFactor = 10

// leastFactor is the least factor that shows, by bisection; infinite if none does.
func leastFactor(shows func(float64) bool) float64 {
	if !shows(mostFactor) {
		return math.Inf(1)
	}
	low := 1.0
	high := float64(mostFactor)
	for high/low > 1.001 {
		middle := math.Sqrt(low * high)
		if shows(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func draw(rng *rand.Rand, pool, to []float64) {
	for i := range to {
		to[i] = pool[rng.IntN(len(pool))]
	}
	slices.Sort(to)
}

// u counts the pairs in which a is larger, ties by half. Both ascend.
func u(a, b []float64) (n float64) {
	below := 0
	upTo := 0
	for _, value := range a {
		for below < len(b) && b[below] < value {
			below++
		}
		for upTo < len(b) && b[upTo] <= value {
			upTo++
		}
		n += float64(below) + float64(upTo-below)/2
	}
	return n
}

// criticalU is the largest number of such pairs that has at most the probability alpha,
// or -1 if there is none. Beyond 50 rounds it is that of the normal distribution, as
// in the test.
func criticalU(n, m int, alpha float64) float64 {
	if n > stats.MannWhitneyExactLimit || m > stats.MannWhitneyExactLimit {
		mean := float64(n*m) / 2
		sd := math.Sqrt(float64(n) * float64(m) * float64(n+m+1) / 12)
		return max(-1, math.Floor(mean-0.5+sd*stats.InvCDF(stats.StdNormal)(alpha)))
	}
	dist := stats.UDist{N1: n, N2: m}
	return float64(sort.Search(n*m+1, func(c int) bool { return dist.CDF(float64(c)) > alpha }) - 1)
}

// Mean of values; 0 for none. [stat.Mean] divides the sum, whose last digit may be another one.
func Mean(values []float64) (mean float64) {
	for _, value := range values {
		mean += value / float64(len(values))
	}
	return mean
}
