package workloads

import (
	"math"
	"math/bits"
)

// weightOne is the integer weight of the most popular subject. Weights are
// integers so that sums are exact and one seed gives one stream.
const weightOne = 1 << 40

// zipfWeights are the popularities of subjects 0 to n-1: that of rank r (from 1)
// is proportional to r to the power of -s. No subject has none.
func zipfWeights(n int, s float64) []uint64 {
	w := make([]uint64, n)
	for i := range w {
		w[i] = max(1, uint64(math.Round(weightOne/math.Pow(float64(i+1), s))))
	}
	return w
}

// total is the sum of weights.
func total(weights []uint64) (sum uint64) {
	for _, w := range weights {
		sum += w
	}
	return sum
}

// alias draws subjects by popularity in constant time (Walker's alias method, as
// Vose builds it), without floating point.
type alias []column

// column stands for 1/n of all draws: the part below cut goes to its own
// subject, the rest to another.
type column struct {
	cut   uint64
	other uint32
}

// newAlias needs at most maxSubjects weights of at most weightOne each.
func newAlias(weights []uint64) alias {
	n, sum := uint64(len(weights)), total(weights)
	// With all weights times n, a column holds exactly sum.
	left := make([]uint64, n)
	var small, large []uint32
	for i, w := range weights {
		left[i] = w * n
		if left[i] < sum {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	a := make(alias, n)
	for i := range a {
		a[i] = column{math.MaxUint64, uint32(i)}
	}
	for len(small) > 0 {
		s := small[len(small)-1]
		small = small[:len(small)-1]
		l := large[len(large)-1]
		cut, _ := bits.Div64(left[s], 0, sum)
		a[s] = column{cut, l}
		left[l] -= sum - left[s]
		if left[l] < sum {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	return a
}

// draw maps a uniform value to a subject.
func (a alias) draw(x uint64) uint32 {
	i, rest := bits.Mul64(x, uint64(len(a)))
	if c := &a[i]; rest >= c.cut {
		return c.other
	}
	return uint32(i)
}
