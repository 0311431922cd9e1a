package results

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/stat"
)

// pool is one distribution over several rounds: the values that occur, in ascending
// order, and for each round how many of its samples are at most that value.
type pool struct {
	values []int64
	upTo   [][]int64 // by round, then by value
	total  int64
}

// newPool reads the histograms of all rounds. It returns nil if a round has no readable
// histogram: some rounds must not pass for all of them.
func newPool(rounds []*Latency) *pool {
	bars := make([][]bar, len(rounds))
	p := &pool{}
	for i, latency := range rounds {
		histogram, err := latency.Decode()
		if histogram == nil || err != nil {
			return nil
		}
		bars[i] = histogram.bars()
		for _, bar := range bars[i] {
			p.values = append(p.values, bar.value)
			p.total += bar.count
		}
	}
	if len(p.values) == 0 {
		return nil
	}
	slices.Sort(p.values)
	p.values = slices.Compact(p.values)
	for _, round := range bars {
		upTo := make([]int64, len(p.values))
		sum := int64(0)
		for i, v := range p.values {
			for len(round) > 0 && round[0].value == v {
				sum += round[0].count
				round = round[1:]
			}
			upTo[i] = sum
		}
		p.upTo = append(p.upTo, upTo)
	}
	return p
}

// quantile of the pool in which round r occurs times[r] times; nil is once each.
func (p *pool) quantile(q float64, times []int64) int64 {
	at := func(i int) (sum int64) {
		for r, upTo := range p.upTo {
			if times == nil {
				sum += upTo[i]
			} else if times[r] > 0 {
				sum += times[r] * upTo[i]
			}
		}
		return sum
	}
	rank := rankOf(q, at(len(p.values)-1))
	return p.values[sort.Search(len(p.values)-1, func(i int) bool { return at(i) >= rank })]
}

// curve is the latency at each of [CurveQuantiles]; nil for no pool.
func (p *pool) curve() []int64 {
	if p == nil {
		return nil
	}
	var out []int64
	for _, q := range stat.CurveQuantiles() {
		out = append(out, p.quantile(q, nil))
	}
	return out
}

// resamples is how often the bootstrap draws. Its limits then differ by less than a
// tenth of the interval's length from one seed to another.
const resamples = 1000

// interval bootstraps over n rounds: it draws n of them with replacement, again and
// again, and takes the statistic of those. Few rounds make the plain percentile interval too
// short. So it returns what two wider ones cover together: the expanded percentile interval
// (Hesterberg 2015, The American Statistician 69:371, section 5.3) and Student's on a
// logarithmic scale. The study in study_test.go holds the coverage. The draws are the same
// for every statistic and in every program.
func interval(n int, value float64, statistic func(times []int64) float64) (lo, hi float64) {
	rng := rand.New(rand.NewPCG(uint64(n), resamples))
	times := make([]int64, n)
	values := make([]float64, resamples)
	var sum, squares float64
	for i := range values {
		clear(times)
		for range n {
			times[rng.IntN(n)]++
		}
		values[i] = statistic(times)
		l := math.Log(values[i] / value)
		sum = sum + l
		squares = squares + l*l
	}
	slices.Sort(values)
	t := student(n-1) * math.Sqrt(float64(n)/float64(n-1))
	k := int(0.5 * math.Erfc(t/math.Sqrt2) * resamples)
	lo = values[k]
	hi = values[resamples-1-k]
	if by := math.Exp(t * math.Sqrt(max(0, squares-sum*sum/resamples)/resamples)); !math.IsNaN(by) && !math.IsInf(by, 0) {
		lo = min(lo, value/by)
		hi = max(hi, value*by)
	}
	return lo, hi
}

// student is the 0.975 quantile of Student's distribution, by its Cornish-Fisher expansion:
// the error is below 0.5 % from 5 degrees of freedom on.
func student(freedom int) float64 {
	const z = 1.959964
	value := float64(freedom)
	return z + (z*z*z+z)/(4*value) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*value*value) + (3*math.Pow(z, 7)+19*math.Pow(z,
		5)+17*z*z*z-15*z)/(384*value*value*value)
}

// meanOf is the mean over rounds with an interval of the same kind as that of a pooled
// percentile.
func meanOf(values []float64) Figure {
	n := len(values)
	if n == 0 {
		return Figure{}
	}
	figure := Figure{Value: stat.Mean(values), Lo: slices.Min(values), Hi: slices.Max(values), Rounds: n}
	if n >= bounds.LeastRounds {
		figure.Coverage = targetCoverage
		figure.Lo, figure.Hi = interval(n, figure.Value, func(times []int64) (sum float64) {
			for i, value := range values {
				sum += value * float64(times[i])
			}
			return sum / float64(n)
		})
	}
	return figure
}

// figure is the quantile of all rounds together, with its interval over rounds.
func (p *pool) figure(q float64) Figure {
	n := len(p.upTo)
	figure := Figure{Value: float64(p.quantile(q, nil)), Rounds: n}
	figure.Lo = figure.Value
	figure.Hi = figure.Value
	if n >= bounds.LeastRounds {
		figure.Coverage = targetCoverage
		figure.Lo, figure.Hi = interval(n, figure.Value, func(times []int64) float64 { return float64(p.quantile(q, times)) })
	}
	return figure
}
