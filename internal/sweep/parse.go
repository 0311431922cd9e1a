package sweep

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/results"
)

// The most values of one parameter, and the most parameters.
const (
	MaxValues     = 100
	MaxParameters = 2
)

// Parse reads NAME=VALUES: values with commas between them, of which each may be a range
// such as 1..64x2 (from 1 to 64, each twice the last) or 0..1+0.25 (from 0 to 1 in steps
// of 0.25). Bounds are numbers or times.
func Parse(text string) (results.Swept, error) {
	name, values, ok := strings.Cut(text, "=")
	p := results.Swept{Name: strings.TrimSpace(name)}
	if strings.ContainsAny(p.Name, "/@?") { // it may be a URL with a password, and is not shown
		return p, errors.New("a parameter is given as NAME=VALUES, e.g. workers=1,8,64 or pool=1..64x2")
	}
	if !ok || p.Name == "" || values == "" {
		return p, fmt.Errorf("%q is not of the form NAME=VALUES, e.g. workers=1,8,64 or pool=1..64x2", text)
	}
	for item := range strings.SplitSeq(values, ",") {
		item = strings.TrimSpace(item)
		more, err := expand(item)
		switch {
		case err != nil:
			return p, fmt.Errorf("%s: %w", p.Name, err)
		case len(p.Values)+len(more) > MaxValues:
			return p, fmt.Errorf("%s has more than %d values: give a larger step", p.Name, MaxValues)
		}
		for _, v := range more {
			if slices.Contains(p.Values, v) {
				return p, fmt.Errorf("%s is given the value %s twice", p.Name, v)
			}
			p.Values = append(p.Values, v)
		}
	}
	return p, nil
}

// ParseAll reads one or two parameters.
func ParseAll(texts []string) ([]results.Swept, error) {
	switch n := len(texts); {
	case n == 0:
		return nil, errors.New("no parameter to sweep: give one such as workers=1,8,64")
	case n > MaxParameters:
		return nil, fmt.Errorf("%d parameters to sweep: give at most %d", n, MaxParameters)
	}
	var out []results.Swept
	for _, text := range texts {
		p, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o results.Swept) bool { return o.Name == p.Name }) {
			return nil, fmt.Errorf("%s is given twice: write all its values into one", p.Name)
		}
		out = append(out, p)
	}
	return out, nil
}

// ParseInterval reads LOW..HIGH, two numbers of which the second is larger.
func ParseInterval(text string) (low, high float64, err error) {
	from, to, ok := strings.Cut(text, "..")
	low, err1 := strconv.ParseFloat(from, 64)
	high, err2 := strconv.ParseFloat(to, 64)
	if !ok || err1 != nil || err2 != nil || !(low > 0 && low < high) || math.IsInf(high, 0) {
		return 0, 0, fmt.Errorf("%q is no interval: give two rates such as 500..20000, the lower one first", text)
	}
	return low, high, nil
}

var ranged = regexp.MustCompile(`^(.+?)\.\.(.+?)(?:([x+])(.+))?$`)

// expand returns the values that an item stands for.
func expand(item string) ([]string, error) {
	if item == "" {
		return nil, errors.New("a value is empty")
	}
	m := ranged.FindStringSubmatch(item)
	if m == nil {
		return []string{item}, nil
	}
	var of [2]float64
	unit := false
	for i, text := range m[1:3] {
		x, ok := results.SweepNumber(text)
		_, err := strconv.ParseFloat(text, 64)
		if !ok || i == 1 && unit != (err != nil) {
			return nil, fmt.Errorf("%q is no range: its bounds are two numbers or two times", item)
		}
		of[i], unit = x, err != nil
	}
	if m[3] == "" {
		return nil, fmt.Errorf("%q has no step: write %sx2 to double, or %s+STEP", item, item, item)
	}
	step, ok := results.SweepNumber(m[4])
	if !ok || m[3] == "x" && (step <= 1 || of[0] <= 0) || m[3] == "+" && step <= 0 || of[1] < of[0] {
		return nil, fmt.Errorf("%q is no range: it rises, by a step above 0 or from above 0 by a factor above 1", item)
	}
	var out []string
	const slack = 1e-9 // of sums of binary fractions
	for i := 0; ; i++ {
		x := of[0] + float64(i)*step
		if m[3] == "x" {
			x = of[0] * math.Pow(step, float64(i))
		}
		if x > of[1]*(1+slack) {
			return out, nil
		}
		if len(out) == MaxValues {
			return nil, fmt.Errorf("%q has more than %d values: give a larger step", item, MaxValues)
		}
		out = append(out, written(x, unit))
	}
}

// written is a number as one would write it, without what binary fractions add.
func written(x float64, isTime bool) string {
	if isTime {
		return time.Duration(math.Round(x)).String()
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 12, 64), 64)
	return strconv.FormatFloat(x, 'f', -1, 64)
}
