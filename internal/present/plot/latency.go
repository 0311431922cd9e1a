package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/stat"
	"github.com/quotabench/quotabench/results"
)

// quantileLabels belong to the named quantiles.
var quantileLabels = []string{"50 %", "90 %", "99 %", "99.9 %", "99.99 %"}

// curve is one strategy's latency by percentile.
type curve struct {
	series
	q, ns []float64
	marks []int // indices into q of the labelled percentiles
	// faint is the index into q from which waiting for a core could explain the line.
	faint int
}

const latencyTitle = "Latency by percentile"

// crowd is how many lines one pair of axes holds; more are split by store.
const crowd = 12

// Latency draws latency by percentile, one line per strategy. A line ends
// where there are too few samples, or too few separate stalls, to go on. Strategies
// that ask a store fill the frame: those that decide within the process are named with
// their figures where they would stretch it. Many strategies are split by store.
func Latency(f results.File) (*Plot, error) {
	all := plotted(f)
	var notes captions
	var curves []curve
	common := 0.99 // up to which all lines go
	for _, s := range all {
		c := curveOf(s)
		if len(c.q) == 0 {
			notes.add("Not shown", s.label, why(s.Latency().P50))
			continue
		}
		end := c.q[len(c.q)-1]
		if end < 0.99 {
			notes.add("No p99", s.label, why(s.Latency().P99))
		}
		if !s.Counts() {
			notes.add("Timings stand, decisions do not", s.label, "invalid")
		}
		common = min(common, end)
		curves = append(curves, c)
	}
	if len(curves) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNothingToPlot, without(all, "no run has latencies"))
	}
	if len(curves) > maxDots {
		return nil, tooMany(len(curves))
	}
	desc := latencyDesc(curves)
	curves, off := withoutFast(curves)
	if c, ok := bareCurve(all); ok {
		curves = append(curves, c)
	}
	// Names stand as the lines lie, the slowest at the top.
	slices.SortStableFunc(curves, func(a, b curve) int { return -compareFloat(a.at(common), b.at(common)) })
	waited := ""
	for _, c := range curves {
		if c.faint < len(c.q) {
			waited = "A line is pale where waiting for a core could explain it in most rounds."
		}
	}
	simulated := f.Kind == results.Simulated
	g := figure{least: 400, sheet: sheet{
		title: latencyTitle, caption: caption(f, all), simulated: simulated, desc: desc,
		note: format.Join(" ", "All kept rounds together. A line ends where samples, or separate stalls behind them, are too few.", waited,
			notes.text(), off),
	}}
	facets := facetsOf(curves, crowd, func(c *curve) int { return c.store() })
	if len(facets) > 1 {
		g.least = 150
	}
	for _, x := range facets {
		g.panels = append(g.panels, latencyPanel(x.title, x.lines, simulated, curves))
	}
	return g.plot(), nil
}

// latencyPanel draws curves on a scale of their own, over percentiles that go as far
// as the longest line of all.
func latencyPanel(title string, curves []curve, simulated bool, all []curve) *panel {
	what := "service time"
	if curves[0].AtRate().Params.Loop == results.OpenLoop {
		what = "response time"
	}
	if simulated {
		what = "modelled " + what
	}
	lo, hi, far := math.Inf(1), ceiling(curves), 0.0
	for _, c := range curves {
		lo = min(lo, slices.Min(c.ns))
	}
	for _, c := range all {
		far = max(far, c.q[len(c.q)-1])
	}
	p := newPanel(title)
	timeAxis(&p.Y, what, lo, hi)
	p.X.Label.Text, p.X.Scale = "percentile of requests", nines{}
	p.X.Min, p.X.Max = 0.5, max(far, 0.99)
	var ticks plot.ConstantTicks
	for i, q := range stat.NamedQuantiles {
		if q <= p.X.Max {
			ticks = append(ticks, plot.Tick{Value: q, Label: quantileLabels[i]})
		}
	}
	p.X.Tick.Marker = ticks
	for n, c := range curves {
		l := line{name: c.label, style: styleOf(n), marks: c.marks}
		if c.label == bareLabel {
			l.style = bareStyle
		}
		for i := range c.q {
			l.add(c.q[i], c.ns[i])
			l.pale = append(l.pale, i >= c.faint)
		}
		if slices.Max(c.ns) > hi {
			l.name = fmt.Sprintf("%s, above the frame: p99 %s", l.name, strings.ReplaceAll(format.NS(c.at(0.99)), " ", "\u00a0"))
		}
		p.lines = append(p.lines, l)
	}
	return p
}

// ceiling is the highest latency that a panel shows: that of its slowest line, or of
// the next one where the slowest would press all others together.
func ceiling(curves []curve) float64 {
	var highest []float64
	lo := math.Inf(1)
	for _, c := range curves {
		highest, lo = append(highest, slices.Max(c.ns)), min(lo, slices.Min(c.ns))
	}
	slowest := slices.MaxFunc(curves, func(a, b curve) int { return compareFloat(slices.Max(a.ns), slices.Max(b.ns)) })
	slices.Sort(highest)
	n := len(highest)
	if n < 4 || slices.Min(slowest.ns) > highest[n-2] || math.Log10(highest[n-1]/lo) < 1.6*math.Log10(highest[n-2]/lo) {
		return highest[n-1]
	}
	return highest[n-2] * 1.5
}

// facet are the lines of one kind of store.
type facet[T any] struct {
	title string
	lines []T
}

// facetsOf splits what is too much for one pair of axes by the stores that strategies
// ask.
func facetsOf[T any](all []T, most int, store func(*T) int) []facet[T] {
	if len(all) <= most {
		return []facet[T]{{"", all}}
	}
	out := []facet[T]{{title: "Redis"}, {title: "PostgreSQL"}, {title: "Redis and PostgreSQL"}, {title: "Other stores"},
		{title: "Within the process"}}
	for i := range all {
		k := store(&all[i])
		out[k].lines = append(out[k].lines, all[i])
	}
	return slices.DeleteFunc(out, func(f facet[T]) bool { return len(f.lines) == 0 })
}

// inProcess is the index of the facet of strategies that ask no store.
const inProcess = 4

// store is the index of a strategy's facet.
func (s *series) store() int {
	cost := &s.Cost
	switch {
	case s.label == bareLabel:
		return 0
	case cost.Commands == 0 && cost.SQL+cost.ModelSQL == 0:
		return inProcess
	case s.other:
		return 3
	case cost.SQL+cost.ModelSQL == 0:
		return 0
	case cost.Commands == 0:
		return 1
	default:
		return 2
	}
}

// withoutFast takes strategies out that ask no store, where they would stretch the
// frame by more than a fifth, and says what they take.
func withoutFast(all []curve) (kept []curve, off string) {
	var lo, hi float64
	for _, c := range all {
		if c.store() == inProcess {
			continue
		}
		if lo == 0 {
			lo, hi = c.ns[0], c.ns[0]
		}
		lo, hi = min(lo, slices.Min(c.ns)), max(hi, slices.Max(c.ns))
	}
	if lo == 0 {
		return all, ""
	}
	var names []string
	for _, c := range all {
		if c.store() == inProcess && math.Log10(lo/slices.Min(c.ns)) > 0.2*math.Log10(max(hi/lo, 10)) {
			names = append(names, fmt.Sprintf("%s (p50 %s, p99 %s)", c.label, format.NS(c.at(0.5)), format.NS(c.at(0.99))))
			continue
		}
		kept = append(kept, c)
	}
	if len(names) > 0 {
		off = "Below the frame, since they ask no store: " + strings.Join(names, ", ") + "."
	}
	return kept, off
}

// latencyDesc names the fastest and the slowest at p99.
func latencyDesc(curves []curve) string {
	var with []curve
	for _, c := range curves {
		if c.q[len(c.q)-1] >= 0.99 && c.store() != inProcess {
			with = append(with, c)
		}
	}
	text := fmt.Sprintf("Latency by percentile of %s.", format.Plural(int64(len(curves)), "strategy", "strategies"))
	if len(with) == 0 {
		return text
	}
	by := func(a, b curve) int { return compareFloat(a.at(0.99), b.at(0.99)) }
	lo, hi := slices.MinFunc(with, by), slices.MaxFunc(with, by)
	return fmt.Sprintf("%s Of those that ask a store %s has the lowest p99, %s, and %s the highest, %s.", text, lo.label,
		format.NS(lo.at(0.99)), hi.label, format.NS(hi.at(0.99)))
}

// curveOf samples a strategy's latency up to the last percentile that may be
// shown.
func curveOf(s series) (c curve) {
	c.series = s
	l := s.Latency()
	points := []results.Percentile{l.P50, l.P90, l.P99, l.P999, l.P9999}
	shown := 0
	for shown < len(points) && points[shown].Shown() {
		shown++
	}
	if shown == 0 {
		return c
	}
	defer func() { c.fade(points) }()
	if l.Curve == nil {
		for i, p := range points[:shown] {
			c.marks = append(c.marks, i)
			c.add(stat.NamedQuantiles[i], p.Value)
		}
		return c
	}
	for i, q := range stat.CurveQuantiles() {
		if q > stat.NamedQuantiles[shown-1] {
			break
		}
		if slices.Contains(stat.NamedQuantiles, q) {
			c.marks = append(c.marks, i)
		}
		c.add(q, float64(l.Curve[i]))
	}
	return c
}

// fade notes where the first percentile begins that waiting for a core may explain.
func (c *curve) fade(points []results.Percentile) {
	c.faint = len(c.q)
	for i, p := range points {
		if 2*p.Waited <= p.Rounds || !p.Shown() {
			continue
		}
		from := 0.0
		if i > 0 {
			from = stat.NamedQuantiles[i-1]
		}
		if at := slices.IndexFunc(c.q, func(q float64) bool { return q > from+1e-9 }); at >= 0 {
			c.faint = at
		}
		return
	}
}

// bareLabel names the line of the bare client, and bareStyle is how it looks.
const bareLabel = "bare client"

var bareStyle = seriesStyle{
	line:  draw.LineStyle{Color: faint, Width: 1.6, Dashes: []vg.Length{2, 3}},
	glyph: draw.GlyphStyle{Color: faint, Radius: 3.2, Shape: groundedGlyph{hollowGlyph{draw.CircleGlyph{}, 1.2}}},
}

// bareCurve is what a bare client saw in the same rounds. There is one where all
// strategies shared a setting.
func bareCurve(all []series) (curve, bool) {
	other := func(s series) bool { return s.AtRate().Params.RatePerS != all[0].AtRate().Params.RatePerS }
	if slices.ContainsFunc(all, other) || len(all) == 0 {
		return curve{}, false
	}
	for _, s := range all {
		if r := s.AtRate(); r.Reference != nil {
			c := curveOf(series{Summary: &results.Summary{Params: r.Params, Service: *r.Reference}, label: bareLabel})
			return c, len(c.q) > 0
		}
	}
	return curve{}, false
}

// add appends a point. Values of 0 have no place on a logarithmic axis.
func (c *curve) add(q, ns float64) {
	c.q = append(c.q, q)
	c.ns = append(c.ns, max(ns, 1))
}

// at is the latency at the last sampled percentile that is not above q.
func (c *curve) at(q float64) float64 {
	v := c.ns[0]
	for i := range c.q {
		if c.q[i] <= q+1e-9 {
			v = c.ns[i]
		}
	}
	return v
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}
