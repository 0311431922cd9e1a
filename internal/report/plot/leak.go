package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// leakRow is a strategy's row in the plot.
type leakRow struct {
	series
	p99 results.Percentile
	// leak in percent of the limit, certain and possible
	pct, possible float64
	missing       string // stands in place of a p99 that is not known
	frontier      bool   // no other beats it in both leak and p99
	name          string
}

// leakFigure is a leak plot: a chart for the leak, and next to it one for p99.
type leakFigure struct {
	table
	rows []leakRow
}

// Leak draws what strategies leak next to what they cost in p99 latency, in a row for each.
// Shapes and colours tell the groups of package ranking; a ring marks wrong rejections. The
// names of those that none beats in both are bold.
func Leak(file results.File) (*Plot, error) {
	all := plotted(file)
	figure := leakFigure{table: table{charts: []axes{newAxes(), newAxes()}}}
	var notes captions
	for _, series := range all {
		figure.add(series, &notes)
	}
	if err := drawn(len(figure.rows), "no run has a valid leak"); err != nil {
		return nil, err
	}
	figure.sort()
	note := "Lines: from no leak to the certain one, paler on to the possible one; the interval of p99 over rounds, if " +
		"there are 6 or more."
	if figure.markFrontier() {
		note += " Bold: no strategy beats it in both leak and p99; not asked of those that reject wrongly, count per " +
			"process, or are unusable."
	}
	figure.sheet = sheet{
		title: "Leak and latency", caption: caption(file, all), desc: figure.describe(),
		simulated: file.Kind == results.Simulated,
		note:      format.Join(" ", note, disturbance(all, latencyOf), notes.text()),
	}
	figure.scales()
	for i := range figure.rows {
		figure.draw(&figure.rows[i])
	}
	figure.explain()
	return figure.plot(), nil
}

// add gives a strategy its row. One that stands on fewer rounds than others is named. In place of
// a p99 of too few samples stands the bound that they give: it is no point on the axis.
func (g *leakFigure) add(s series, notes *captions) {
	percentile := s.Latency().P99
	if !s.Counts() {
		notes.add("Not shown", s.label, "invalid")
		return
	}
	d := leakRow{series: s, p99: percentile, pct: s.Leak.PctOfLimit,
		possible: max(s.Leak.PctOfLimit, s.Leak.PossiblePctOfLimit)}
	if percentile.Coverage == 0 { // fewer than 6 rounds say nothing about how much it varies
		d.p99.Lo = percentile.Value
		d.p99.Hi = percentile.Value
	}
	switch {
	case percentile.Rounds == 0:
		d.missing = string(codes.NoSamples)
	case !percentile.Shown():
		d.missing = figures.Percentile(percentile).Value
	}
	if s.Invalid > 0 {
		notes.add("Some rounds left out", s.label, "invalid")
	}
	d.name = marked(s.label, percentile.Figure)
	if pct := s.FalseRejects.PctOfValid; pct > 0 {
		d.name += fmt.Sprintf(", rejects %s wrongly", format.Pct(pct))
	}
	if d.pct == 0 && d.possible > 0 {
		d.name += fmt.Sprintf(", leak up to %s possible", format.Pct(d.possible))
	}
	if s.PerProcess {
		d.name += ", per process"
	}
	g.rows = append(g.rows, d)
}

// sort puts rows in the order of the groups, and in each by p99.
func (g *leakFigure) sort() {
	groups := ranking.Groups()
	slices.SortStableFunc(g.rows, func(a, b leakRow) int {
		return cmp.Or(
			cmp.Compare(slices.Index(groups, a.group), slices.Index(groups, b.group)),
			cmp.Compare(a.missing, b.missing), // those with a p99 first
			cmp.Compare(a.p99.Value, b.p99.Value),
		)
	})
}

// scales chooses those that hold every row. Baselines may lie to the left of what others
// need of p99.
func (g *leakFigure) scales() {
	lo := math.Inf(1)
	hi := 0.0
	extent := func(d *leakRow) {
		if d.missing == "" {
			lo = min(lo, d.p99.Lo)
			hi = max(hi, d.p99.Hi)
		}
	}
	var leaks []float64
	for i := range g.rows {
		leakRow := &g.rows[i]
		if leakRow.group != ranking.Baseline {
			extent(leakRow)
		}
		leaks = append(leaks, leakRow.pct, leakRow.possible)
	}
	if hi == 0 {
		for i := range g.rows {
			extent(&g.rows[i])
		}
	}
	if hi == 0 { // an empty scale
		lo = float64(time.Millisecond)
		hi = float64(time.Second)
	}
	x := "p99 service time"
	if g.rows[0].AtRate().Params.Loop == codes.OpenLoop {
		x = "p99 response time"
	}
	if g.simulated {
		x = "modelled " + x
	}
	g.charts[0].X.Label.Text, g.charts[1].X.Label.Text = "leak, in % of the limit, logarithmic", x
	timeAxis(&g.charts[1].X, lo/1.15, hi*1.15)
	percentAxis(&g.charts[0].X, leaks)
}

// markFrontier marks the rows that no other beats in both leak and p99, and reports whether
// there are several.
func (g *leakFigure) markFrontier() bool {
	var order []*leakRow
	for i := range g.rows {
		leakRow := &g.rows[i]
		if leakRow.group != ranking.Baseline && leakRow.group != ranking.Unusable && leakRow.FalseRejects.Count == 0 &&
			!leakRow.PerProcess && leakRow.p99.Shown() {
			order = append(order, leakRow)
		}
	}
	slices.SortStableFunc(order, func(a, b *leakRow) int {
		return cmp.Or(cmp.Compare(a.p99.Value, b.p99.Value), cmp.Compare(a.pct, b.pct))
	})
	least := math.Inf(1)
	n := 0
	for _, leakRow := range order {
		if leakRow.pct < least {
			least = leakRow.pct
			leakRow.frontier = true
			n++
		}
	}
	return n > 0
}

// draw draws a strategy's name, its lines and its two marks.
func (g *leakFigure) draw(d *leakRow) {
	leak := &g.charts[0]
	p99 := &g.charts[1]
	style := groupStyles[d.group]
	at := g.row(d.name, d.frontier)
	line := draw.LineStyle{Color: pale(style.Color), Width: 1.6}
	leak.add(bar(0, d.pct, at, line), bar(d.pct, d.possible, at, draw.LineStyle{Color: pale(line.Color), Width: 1.6}))
	if d.FalseRejects.Count > 0 {
		leak.add(dot(d.pct, at, ringStyle))
	}
	leak.add(dot(d.pct, at, style))
	if d.missing != "" {
		faintly := labelStyle
		faintly.Color = faint
		p99.add(&plotter.Labels{XYs: plotter.XYs{{X: p99.X.Min, Y: at}}, Labels: []string{d.missing},
			TextStyle: []text.Style{faintly},
			Offset:    vg.Point{X: 8}})
		return
	}
	within := func(ns float64) float64 { return min(max(ns, p99.X.Min*1.1), p99.X.Max) }
	p99.add(bar(within(d.p99.Lo), within(d.p99.Hi), at, line), dot(within(d.p99.Value), at, style))
}

// groupStyles tell groups by colour and by shape.
var groupStyles = map[ranking.Group]draw.GlyphStyle{
	ranking.Enforces:  {Color: palette[0], Radius: dotRadius, Shape: draw.CircleGlyph{}},
	ranking.Bounded:   {Color: palette[4], Radius: dotRadius, Shape: draw.BoxGlyph{}},
	ranking.Undecided: {Color: palette[4], Radius: dotRadius, Shape: draw.RingGlyph{}},
	ranking.Loose:     {Color: palette[4], Radius: dotRadius + 0.8, Shape: draw.TriangleGlyph{}},
	ranking.Fails:     {Color: palette[1], Radius: dotRadius + 0.8, Shape: draw.PyramidGlyph{}},
	ranking.Unusable: {Color: color.NRGBA{0x7f, 0x7f, 0x7f, 0xff}, Radius: dotRadius,
		Shape: lineGlyph{draw.CrossGlyph{}, 2}},
	ranking.Baseline: {Color: color.NRGBA{0xb8, 0xb8, 0xb8, 0xff}, Radius: dotRadius,
		Shape: lineGlyph{draw.PlusGlyph{}, 2}},
}

// ringStyle marks wrong rejections.
var ringStyle = draw.GlyphStyle{Color: palette[1], Radius: dotRadius + 4, Shape: lineGlyph{draw.RingGlyph{}, 1.3}}

// explain explains the marks in use.
func (g *leakFigure) explain() {
	for _, group := range ranking.Groups() {
		if slices.ContainsFunc(g.rows, func(d leakRow) bool { return d.group == group }) {
			g.key = append(g.key, keyEntry{string(group), groupStyles[group]})
		}
	}
	if slices.ContainsFunc(g.rows, func(d leakRow) bool { return d.FalseRejects.Count > 0 }) {
		g.key = append(g.key, keyEntry{"rejects wrongly", ringStyle})
	}
}

// describe says what the plot shows.
func (g *leakFigure) describe() string {
	txt := fmt.Sprintf("Leak in percent of the limit, and p99 latency, of %s.",
		format.Plural(int64(len(g.rows)), "strategy", "strategies"))
	for _, group := range ranking.Groups() {
		n := int64(0)
		first := (*leakRow)(nil)
		for i := range g.rows {
			if leakRow := &g.rows[i]; leakRow.group == group {
				n++
				if first == nil && leakRow.missing == "" {
					first = leakRow
				}
			}
		}
		if n > 0 {
			txt += fmt.Sprintf(" %s: %d.", upperFirst(string(group)), n)
		}
		if first != nil {
			txt += fmt.Sprintf(" Of these %s has the lowest p99, %s.", first.label, format.NS(first.p99.Value))
		}
	}
	var worst *leakRow
	for i := range g.rows {
		if leakRow := &g.rows[i]; leakRow.pct > 0 && leakRow.group != ranking.Baseline &&
			(worst == nil || leakRow.pct > worst.pct) {
			worst = leakRow
		}
	}
	if worst != nil {
		txt += fmt.Sprintf(" The largest leak is %s of the limit, of %s.", format.Pct(worst.pct), worst.label)
	}
	return drawable(txt)
}

// upperFirst begins a sentence.
func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
