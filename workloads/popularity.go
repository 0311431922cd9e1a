package workloads

import (
	"fmt"
	"math"
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
			return popularity{}, fmt.Errorf("popularity %q: in hot:SHARE:N the share is a number between 0 and 1, and N from 1", form)
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
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = strconv.ErrRange
	}
	return v, err
}
