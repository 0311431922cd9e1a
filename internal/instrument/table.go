//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results/text/layout"
)

// sample is what one turn of a probe measured, by the names of [metric.key].
type sample map[string]float64

// turn takes one sample of one side.
type turn func(context.Context) (sample, error)

// inTurns takes n samples of each, in the order a b, b a, a b and so on.
func inTurns(ctx context.Context, n int, a, b turn) (as, bs []sample, err error) {
	for i := range n {
		var x, y sample
		if i%2 == 0 {
			if x, err = a(ctx); err == nil {
				y, err = b(ctx)
			}
		} else if y, err = b(ctx); err == nil {
			x, err = a(ctx)
		}
		if err != nil {
			return nil, nil, err
		}
		as, bs = append(as, x), append(bs, y)
	}
	return as, bs, nil
}

// metric is a figure of a probe: one row of the table.
type metric struct {
	what, key, unit string
	more            bool    // is better
	per             float64 // what the unit holds of the sample's; 0 for one
}

// row is a metric with what was measured, pair by pair.
type row struct {
	metric
	left, right []float64
	missing     string // on which side there is none
}

// newRow takes the metric out of the samples. A metric that one of them lacks is
// missing on that side.
func newRow(m metric, names [2]string, left, right []sample) row {
	r := row{metric: m}
	for i, samples := range [][]sample{left, right} {
		var values []float64
		for _, s := range samples {
			if v, ok := s[m.key]; ok {
				values = append(values, v/max(m.per, 1))
			}
		}
		switch {
		case len(values) < len(samples):
			r.missing = format.Join(" and ", r.missing, names[i])
		case i == 0:
			r.left = values
		default:
			r.right = values
		}
	}
	return r
}

// ratios are the right by the left, pair by pair, sorted. They are nil where a
// figure is missing or 0.
func (r row) ratios() []float64 {
	if r.missing != "" {
		return nil
	}
	var out []float64
	for i, l := range r.left {
		if l <= 0 || r.right[i] <= 0 {
			return nil
		}
		out = append(out, r.right[i]/l)
	}
	slices.Sort(out)
	return out
}

// What a verdict can be.
const (
	faster     = "faster"
	slower     = "slower"
	notApart   = "not told apart"
	noRatio    = "no ratio: 0"
	lessMemory = "less"
	moreMemory = "more"
)

// verdict says which side is better where all pairs agree.
func (r row) verdict() string {
	ratios := r.ratios()
	better, worse := faster, slower
	if r.unit == mebibytes || r.unit == allocations {
		better, worse = lessMemory, moreMemory
	}
	if r.more {
		better, worse = worse, better
	}
	switch {
	case r.missing != "":
		return "missing: " + r.missing
	case ratios == nil:
		return noRatio
	case ratios[len(ratios)-1] < 1:
		return better
	case ratios[0] > 1:
		return worse
	}
	return notApart
}

// median of at least one value.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// report is the tables, one for each group of probes.
type report struct {
	base   string
	pairs  int
	groups [groups][]row
	others []float64
	given  []module // see tool
}

func (r *report) names(g group) [2]string {
	switch g {
	case theirsAndOurs:
		return [2]string{"redis-benchmark", "incr-expire"}
	case sharedAndAuto:
		return [2]string{"cores shared", "cores auto"}
	}
	return [2]string{r.base, "here"}
}

func (r *report) add(p probe, left, right []sample) {
	for _, m := range p.metrics {
		r.groups[p.group] = append(r.groups[p.group], newRow(m, r.names(p.group), left, right))
	}
}

func (r *report) print(w io.Writer) {
	shown := false
	for g, rows := range r.groups {
		if len(rows) == 0 {
			continue
		}
		shown = true
		names := r.names(group(g))
		table := layout.Grid{Columns: []layout.Column{
			{Title: "what", Left: true, Flexible: true, Minimum: 20}, {Title: "unit", Left: true}, {Title: "better", Left: true},
			{Title: names[0] + ",\nmedian"}, {Title: names[1] + ",\nmedian"}, {Title: names[1] + " / " + names[0] + ",\nmedian [least, most]"},
			{Title: "verdict", Left: true},
		}}
		for _, x := range rows {
			table.Add(x.cells()...)
		}
		for _, line := range table.Lines(layout.Width) {
			fmt.Fprintln(w, line)
		}
		fmt.Fprintln(w)
	}
	if !shown {
		return
	}
	notes := fmt.Sprintf("%s per row, the sides in turns; a verdict needs all of them on one side of 1, which equal programs reach in one row of %d. "+
		"Percentiles count here also where a report would strike them: an earlier commit cannot strike.",
		format.Plural(int64(r.pairs), "pair", "pairs"), 1<<min(r.pairs-1, 62))
	if len(r.others) > 0 {
		notes += fmt.Sprintf(" Other programs took %s of the processors in the median sample, %s in the worst.",
			format.Pct(100*median(r.others)), format.Pct(100*slices.Max(r.others)))
	}
	for _, m := range r.given {
		notes += fmt.Sprintf(" Both sides have this tree's version of %s; %s named %s.", m.Path, r.base, m.Version)
	}
	for _, line := range layout.Wrap(notes, layout.Width) {
		fmt.Fprintln(w, line)
	}
}

func (r row) cells() []string {
	better := "less"
	if r.more {
		better = "more"
	}
	middle := func(values []float64) string {
		if len(values) == 0 {
			return "-"
		}
		return digits(median(values))
	}
	ratio := "-"
	if x := r.ratios(); x != nil {
		ratio = fmt.Sprintf("%s [%s, %s]", digits(median(x)), digits(x[0]), digits(x[len(x)-1]))
	}
	return []string{r.what, r.unit, better, middle(r.left), middle(r.right), ratio, r.verdict()}
}

// digits renders a figure of any size with three digits at least.
func digits(x float64) string {
	switch {
	case math.Abs(x) >= 1000:
		return format.Count(int64(math.Round(x)))
	case math.Abs(x) < 1 && x != 0:
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return format.Digits(x)
}
