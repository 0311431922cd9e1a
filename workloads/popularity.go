package workloads

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// popularityForms lists the ways to say how popular the subjects are, for help
// texts and errors: all checks on one subject; all subjects alike; the subject of
// rank r proportional to r to the power of -S (1 if left out); N subjects that get
// SHARE of the checks together, and others that share the rest evenly.
const popularityForms = "single, uniform, zipf or zipf:S, hot:SHARE:N"

// popularity is a parsed form. Its zero value is no form.
type popularity struct {
	name  string
	s     float64 // zipf: the exponent
	share float64 // hot: of the checks
	hot   int     // hot: number of subjects
}

func parsePopularity(form string) (popularity, error) {
	name, rest, more := strings.Cut(form, ":")
	p := popularity{name: name}
	switch {
	case (name == "single" || name == "uniform") && !more:
		return p, nil
	case name == "zipf" && !more:
		p.s = 1
		return p, nil
	case name == "zipf":
		s, err := number(rest)
		if err != nil || !(s >= 0 && s <= maxZipf) {
			return popularity{}, fmt.Errorf("popularity %q: the exponent of zipf:S is a number from 0 to %v", form, maxZipf)
		}
		p.s = s
		return p, nil
	case name == "hot":
		share, count, _ := strings.Cut(rest, ":")
		var err, errN error
		p.share, err = number(share)
		p.hot, errN = strconv.Atoi(count)
		if err != nil || errN != nil || !(p.share > 0 && p.share < 1) || p.hot < 1 || p.hot > maxSubjects {
			return popularity{}, fmt.Errorf("popularity %q: in hot:SHARE:N the share is a number between 0 and 1, and N from 1",
				form)
		}
		return p, nil
	}
	return popularity{}, fmt.Errorf("unknown popularity %q: one of %s", form, popularityForms)
}

// String is the form that parses to p.
func (p popularity) String() string {
	switch p.name {
	case "zipf":
		return "zipf:" + strconv.FormatFloat(p.s, 'g', -1, 64)
	case "hot":
		return fmt.Sprintf("hot:%s:%d", strconv.FormatFloat(p.share, 'g', -1, 64), p.hot)
	}
	return p.name
}

// fits reports why n subjects cannot be that popular.
func (p popularity) fits(n int) error {
	switch {
	case p.name == "single" && n != 1:
		return fmt.Errorf("popularity single is for one subject, not for %d", n)
	case p.name == "hot" && p.hot >= n:
		return fmt.Errorf("popularity %v needs more than %d subjects, not %d", p, p.hot, n)
	case p.name == "hot" && p.share*float64(n) < float64(p.hot):
		return fmt.Errorf("popularity %v makes the hot ones of %d subjects the least popular", p, n)
	}
	return nil
}

// weights are the popularities of subjects 0 to n-1 as integers, never rising,
// the first weightOne. No subject has none.
func (p popularity) weights(n int) []uint64 {
	if p.name != "hot" {
		return zipfWeights(n, p.s) // an exponent of 0 is uniform
	}
	cold := (1 - p.share) / float64(n-p.hot) / (p.share / float64(p.hot))
	w := make([]uint64, n)
	for i := range w {
		w[i] = weightOne
		if i >= p.hot {
			w[i] = min(weightOne, max(1, uint64(math.Round(weightOne*cold))))
		}
	}
	return w
}

// number parses a finite decimal number.
func number(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
		err = strconv.ErrRange
	}
	return value, err
}

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
	n := uint64(len(weights))
	sum := total(weights)
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
	if column := &a[i]; rest >= column.cut {
		return column.other
	}
	return uint32(i)
}
