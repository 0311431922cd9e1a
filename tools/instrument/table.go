//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// sample is what one turn of a probe measured, by the names of [metric.key].
type sample map[string]float64

// turn takes one sample of one side.
type turn func(context.Context) (sample, error)

// inTurns takes n samples of each, in the order a b, b a, a b and so on.
func inTurns(ctx context.Context, n int, a, b turn) (samples, bs []sample, err error) {
	for i := range n {
		var x, y sample
		if i%2 == 0 {
			x, err = a(ctx)
			if err == nil {
				y, err = b(ctx)
			}
		} else if y, err = b(ctx); err == nil {
			x, err = a(ctx)
		}
		if err != nil {
			return nil, nil, err
		}
		samples = append(samples, x)
		bs = append(bs, y)
	}
	return samples, bs, nil
}

// metric is a figure of a probe: one row of the table.
type metric struct {
	what, key, unit string
	more            bool    // is better
	per             float64 // what the unit holds of the sample's; 0 for one

	// limit says that the figure is divided by a limit in the same run: it is itself what
	// is wanted and committed, and not its ratio to the commit's.
	limit bool
	// seconds is the time in which the figure, a time, has to stay. A time is never
	// committed.
	seconds float64
	// wanted is the aim: of the ratio, or of the figure if it has a limit. 0 is none.
	wanted float64
}

// row is a metric with what was measured, pair by pair.
type row struct {
	metric
	group       group
	left, right []float64
	missing     string // on which side there is none
}

// newRow takes the metric out of the samples. A metric that one of them lacks is
// missing on that side.
func newRow(m metric, g group, names [2]string, left, right []sample) row {
	if m.seconds > 0 {
		m.wanted = m.seconds
	}
	r := row{metric: m, group: g}
	for i, samples := range [][]sample{left, right} {
		var values []float64
		for _, sample := range samples {
			if value, ok := sample[m.key]; ok {
				values = append(values, value/max(m.per, 1))
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

// ratios are the right by the left, pair by pair, sorted. They are nil if a
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

// verdict says which side is better if all pairs agree.
func (r row) verdict() string {
	ratios := r.ratios()
	better := faster
	worse := slower
	if r.unit == mebibytes || r.unit == allocations {
		better = lessMemory
		worse = moreMemory
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

// report is the tables: of what was divided by a commit's, of what was divided by a
// limit in the same run, and one for each further group of probes.
type report struct {
	base      string
	pairs     int
	tables    [tables][]row
	checks    []checked
	others    []float64
	given     []module // see tool
	committed ledger
}

// tables are those of the groups, and before them that of limits.
const tables = int(groups) + 1

// table is where the row stands.
func (r row) table() int {
	switch {
	case r.group == beforeAndNow && !r.limit && r.seconds == 0:
		return 0
	case r.group == beforeAndNow:
		return 1
	}
	return int(r.group) + 1
}

// rows are those of all tables.
func (r *report) rows() []row { return slices.Concat(r.tables[:]...) }

// behind names the rows that fell behind what is committed, and what is no longer the
// same on both sides.
func (r *report) behind() (names []string) {
	for _, row := range r.rows() {
		if why := r.committed.worse(row, r.base); why != "" {
			names = append(names, row.what+", "+row.unit+": "+why)
		}
	}
	for _, checked := range r.checks {
		for _, text := range checked.unexplained {
			names = append(names, checked.what+": "+text)
		}
	}
	return names
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

// of makes the rows of a probe's samples.
func (r *report) of(p probe, left, right []sample) (rows []row) {
	for _, metric := range p.metrics {
		rows = append(rows, newRow(metric, p.group, r.names(p.group), left, right))
	}
	return rows
}

// add puts rows into their tables.
func (r *report) add(rows []row) {
	for _, row := range rows {
		r.tables[row.table()] = append(r.tables[row.table()], row)
	}
}

func (r *report) print(w io.Writer) {
	shown := false
	for i, rows := range r.tables {
		if len(rows) == 0 {
			continue
		}
		shown = true
		names := r.names(rows[0].group)
		middle := names[1] + " / " + names[0] + ",\nmedian [least, most]"
		if i == 1 {
			middle = "here, in the unit,\nmedian [least, most]"
		}
		table := document.Table{Columns: []document.Column{
			{Title: "what", Left: true, Flexible: true, Minimum: 16}, {Title: "unit", Left: true},
			{Title: names[0]}, {Title: names[1]}, {Title: middle},
			{Title: "wanted"}, {Title: "com-\nmitted"}, {Title: "verdict", Left: true, Flexible: true, Minimum: 16},
		}}
		for _, row := range rows {
			table.Add(r.cells(row)...)
		}
		for _, line := range (layout.Page{}).Table(&table) {
			fmt.Fprintln(w, line)
		}
		fmt.Fprintln(w)
	}
	for _, checked := range r.checks {
		for _, line := range checked.lines() {
			for _, part := range layout.Wrap(line, layout.Width) {
				fmt.Fprintln(w, part)
			}
		}
		fmt.Fprintln(w)
	}
	if !shown {
		return
	}
	notes := fmt.Sprintf("%s per row at most, the sides in turns; a verdict needs all of them on one side of 1, which "+
		"equal programs reach in one row of %d. A row fails where its median is %.0f %% worse than the committed one and "+
		"each of its pairs is worse than that. A time is not committed. Percentiles count here also where a report would "+
		"discard them: an earlier commit cannot discard.",
		format.Plural(int64(r.pairs), "pair", "pairs"), 1<<min(r.pairs-1, 62), 100*tolerance)
	if len(r.others) > 0 {
		notes += fmt.Sprintf(" Other programs took %s of the processors in the median sample, %s in the worst.",
			format.Pct(100*median(r.others)), format.Pct(100*slices.Max(r.others)))
	}
	for _, module := range r.given {
		notes += fmt.Sprintf(" Both sides have this tree's version of %s; %s named %s.", module.Path, r.base, module.Version)
	}
	for _, line := range layout.Wrap(notes, layout.Width) {
		fmt.Fprintln(w, line)
	}
}

func (r *report) cells(x row) []string {
	middle := func(values []float64) string {
		if len(values) == 0 {
			return "-"
		}
		return digits(median(values))
	}
	values := x.ratios()
	if x.limit || x.seconds > 0 {
		values = slices.Sorted(slices.Values(x.right))
	}
	ratio := "-"
	if len(values) > 0 {
		ratio = fmt.Sprintf("%s [%s, %s]", digits(median(values)), digits(values[0]), digits(values[len(values)-1]))
	}
	wanted := "less"
	if x.more {
		wanted = "more"
	}
	if x.wanted > 0 {
		sign := "≤ "
		if x.more {
			sign = "≥ "
		}
		wanted = sign + strconv.FormatFloat(x.wanted, 'g', 3, 64)
	}
	committed := "-"
	if _, against := x.standing(r.base); against != "" {
		if entry, ok := r.committed[x.key()]; ok && entry.against == against {
			committed = digits(entry.median)
		}
	}
	verdict := x.verdict()
	met, ok := x.met()
	if ok && x.missing != "" { // it has a limit, and the commit has no such figure
		verdict = ""
	}
	if ok {
		verdict = format.Join(", ", verdict, map[bool]string{true: "met", false: "not met"}[met])
	}
	if why := r.committed.worse(x, r.base); why != "" {
		verdict = format.Join(", ", verdict, "FAILS: "+why)
	}
	return []string{x.what, x.unit, middle(x.left), middle(x.right), ratio, wanted, committed, verdict}
}

// digits renders a figure of any size with three digits at least.
func digits(value float64) string {
	switch {
	case math.Abs(value) >= 1000:
		return format.Count(int64(math.Round(value)))
	case math.Abs(value) < 1 && value != 0:
		return strconv.FormatFloat(value, 'g', 3, 64)
	}
	return format.Digits(value)
}
