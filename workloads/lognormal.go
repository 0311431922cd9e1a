package workloads

import (
	"math"
	"math/bits"
)

const (
	// maxSigma bounds how far apart costs are: with 4 the largest is 300 million
	// times the median.
	maxSigma = 4.0
	// octaves of probability on either side of the median, each half of the one
	// before, and steps within one. So the table is as fine in the tails, where
	// the large costs are, as in the middle.
	octaves = 20
	steps   = 1 << stepBits
	// stepBits of a value after its leading one select the step.
	stepBits = 5
	// lognormalTail is the probability beyond the last edge on one side.
	lognormalTail = 1.0 / (1 << (octaves + 1))
)

// lognormal is the quantile function of a log-normal distribution as a table of
// integers, with straight lines between its edges. What is beyond the outermost
// edges has their cost.
type lognormal struct {
	// Edge k belongs to a tail of probability p(k), which rises from
	// lognormalTail to 1/2; upper and lower have the costs there on both sides.
	upper, lower [octaves*steps + 1]int64
}

func newLognormal(median, sigma float64) *lognormal {
	l := new(lognormal)
	for k := range l.upper {
		octave, step := k/steps, k%steps
		tail := math.Ldexp(1+float64(step)/steps, octave) * lognormalTail
		far := math.Exp(sigma * normalTail(tail))
		l.upper[k] = max(1, int64(math.Round(median*far)))
		l.lower[k] = max(1, int64(math.Round(median/far)))
	}
	return l
}

// normalTail is the value that a standard normal variable exceeds with the given
// probability, at most 1/2.
func normalTail(p float64) float64 { return math.Sqrt2 * math.Erfcinv(2*p) }

// quantile is the cost below which the share x / 2^64 of all costs is.
func (l *lognormal) quantile(x uint64) int64 {
	edges, tail := &l.lower, x
	if x>>63 == 1 {
		edges, tail = &l.upper, ^x
	}
	// tail / 2^64 is the probability beyond x on its side of the median.
	octave := bits.LeadingZeros64(tail) - 1
	if octave >= octaves {
		return edges[0]
	}
	mantissa := tail << (octave + 2) // what follows the leading one
	k := (octaves-1-octave)*steps + int(mantissa>>(64-stepBits))
	from, to := edges[k], edges[k+1]
	part := mantissa << stepBits >> 1 // as a share of 2^63
	if from <= to {
		return from + scale(uint64(to-from), part)
	}
	return from - scale(uint64(from-to), part)
}

// scale is d times part / 2^63, rounded to the nearest.
func scale(d, part uint64) int64 {
	hi, lo := bits.Mul64(d, part)
	lo, carry := bits.Add64(lo, 1<<62, 0)
	return int64((hi+carry)<<1 | lo>>63)
}
