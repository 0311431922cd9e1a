package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/results"
)

// quantileLabels belong to the named quantiles.
var quantileLabels = []string{"50 %", "90 %", "99 %", "99.9 %", "99.99 %"}

// curve is one strategy's latency by percentile: nanoseconds over quantiles.
type curve struct {
	series
	line
}

// crowd is how many lines one pair of axes holds; more are split by store.
const crowd = 12

// Latency draws latency by percentile, one line per strategy. A line ends
// when there are too few samples to go on. Strategies that
// decide within the process have a frame of their own, and many strategies are split by store.
func Latency(file results.File) (*Plot, error) {
	all := plotted(file)
	var notes captions
	var curves []curve
	common := 0.99 // up to which all lines go
	for _, series := range all {
		curve := curveOf(series)
		if len(curve.at) == 0 {
			notes.add("Not shown", series.label, string(series.Latency().P50.Status))
			continue
		}
		end := curve.last().X
		if end < 0.99 {
			notes.add("No p99", series.label, string(series.Latency().P99.Status))
		}
		if !series.Counts() {
			notes.add("Timings stand, decisions do not", series.label, "invalid")
		}
		common = min(common, end)
		curves = append(curves, curve)
	}
	if err := drawn(len(curves), "no run has latencies"); err != nil {
		return nil, err
	}
	desc := latencyDesc(curves)
	if curve, ok := bareCurve(all); ok {
		curves = append(curves, curve)
	}
	// Names stand as the lines lie, the slowest at the top.
	slices.SortStableFunc(curves, func(a, b curve) int { return cmp.Compare(b.value(common), a.value(common)) })
	simulated := file.Kind == results.Simulated
	g := figure{sheet: sheet{
		title: "Latency by percentile", caption: caption(file, all), simulated: simulated, desc: desc,
		note: format.Join(" ", "All rounds together. A line ends where samples are too few.", disturbance(all, latencyOf),
			notes.text()),
	}}
	for _, facet := range facetsOf(curves) {
		g.panels = append(g.panels, latencyPanel(facet.title, facet.lines, simulated, curves))
	}
	return g.plot(), nil
}

// latencyPanel draws curves on a scale of their own, over percentiles that go as far
// as the longest line of all.
func latencyPanel(title string, curves []curve, simulated bool, all []curve) *panel {
	what := "service time"
	if curves[0].AtRate().Params.Loop == codes.OpenLoop {
		what = "response time"
	}
	if simulated {
		what = "modelled " + what
	}
	lo := math.Inf(1)
	hi := ceiling(curves)
	far := 0.99
	for _, curve := range curves {
		lo = min(lo, curve.at[0].Y)
	}
	for _, curve := range all {
		far = max(far, curve.last().X)
	}
	p := newPanel(format.Join(": ", title, what))
	timeAxis(&p.Y, lo, hi)
	p.X.Label.Text = "percentile of requests"
	p.X.Scale = nines{}
	p.X.Min = 0.5
	p.X.Max = far
	var ticks plot.ConstantTicks
	for i, q := range stat.NamedQuantiles {
		if q <= p.X.Max {
			ticks = append(ticks, plot.Tick{Value: q, Label: quantileLabels[i]})
		}
	}
	p.X.Tick.Marker = ticks
	for _, curve := range curves {
		curve.line.style = curve.series.style
		curve.name = marked(curve.label, curve.Latency().P50.Figure)
		if curve.last().Y > hi {
			q := min(curve.last().X, 0.99) // a line may end before p99
			curve.name = fmt.Sprintf("%s, above the frame: p%s %s", curve.name, format.TrimZeros(format.Digits(100*q)),
				strings.ReplaceAll(format.NS(curve.value(q)), " ", "\u00a0"))
		}
		p.lines = append(p.lines, curve.line)
	}
	return p
}

// ceiling is the highest latency that a panel shows: that of its slowest line, or of
// the next one if the slowest would press all others together.
func ceiling(curves []curve) float64 {
	curves = slices.SortedFunc(slices.Values(curves), func(a, b curve) int { return cmp.Compare(a.last().Y, b.last().Y) })
	n := len(curves)
	lo := math.Inf(1)
	for _, curve := range curves {
		lo = min(lo, curve.at[0].Y)
	}
	highest := curves[n-1].last().Y
	if n < 4 {
		return highest
	}
	next := curves[n-2].last().Y
	if curves[n-1].at[0].Y > next || math.Log10(highest/lo) < 1.6*math.Log10(next/lo) {
		return highest
	}
	return next * 1.5
}

// facet are the lines of one panel.
type facet struct {
	title string
	lines []curve
}

// facetsOf splits what is too much for one pair of axes by the stores that strategies ask,
// and apart from those the strategies that ask none, which are faster by orders of magnitude.
func facetsOf(all []curve) []facet {
	out := []facet{{title: "Redis"}, {title: "PostgreSQL"}, {title: "Redis and PostgreSQL"}, {title: "Other stores"},
		{title: "Within the process"}}
	if len(all) <= crowd {
		out[0].title = "With a store"
	}
	for i := range all {
		k := all[i].store()
		if len(all) <= crowd && k != inProcess {
			k = 0
		}
		out[k].lines = append(out[k].lines, all[i])
	}
	out = slices.DeleteFunc(out, func(f facet) bool { return len(f.lines) == 0 })
	if len(out) == 1 {
		out[0].title = ""
	}
	return out
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

// latencyDesc names the fastest and the slowest at p99.
func latencyDesc(curves []curve) string {
	var with []curve
	for _, curve := range curves {
		if curve.last().X >= 0.99 && curve.store() != inProcess {
			with = append(with, curve)
		}
	}
	text := fmt.Sprintf("Latency by percentile of %s.", format.Plural(int64(len(curves)), "strategy", "strategies"))
	if len(with) == 0 {
		return text
	}
	by := func(a, b curve) int { return cmp.Compare(a.value(0.99), b.value(0.99)) }
	lo := slices.MinFunc(with, by)
	hi := slices.MaxFunc(with, by)
	return fmt.Sprintf("%s Of those that ask a store %s has the lowest p99, %s, and %s the highest, %s.", text, lo.label,
		format.NS(lo.value(0.99)), hi.label, format.NS(hi.value(0.99)))
}

// curveOf samples a strategy's latency up to the last percentile that has enough samples.
func curveOf(s series) (c curve) {
	c.series = s
	percentiles := s.Latency()
	points := []results.Percentile{percentiles.P50, percentiles.P90, percentiles.P99, percentiles.P999, percentiles.P9999}
	quantiles := stat.NamedQuantiles
	value := func(i int) float64 { return points[i].Value }
	if percentiles.Curve != nil {
		quantiles = stat.CurveQuantiles()
		value = func(i int) float64 { return float64(percentiles.Curve[i]) }
	}
	for i, q := range quantiles {
		at := slices.IndexFunc(stat.NamedQuantiles, func(named float64) bool { return q <= named })
		if !points[at].Shown() {
			break
		}
		if q == stat.NamedQuantiles[at] {
			c.marks = append(c.marks, i)
		}
		c.add(q, max(value(i), 1)) // 0 has no place on a logarithmic axis
	}
	return c
}

// bareLabel names the line of the bare client, and bareStyle is how it looks.
const bareLabel = "bare client"

var bareStyle = seriesStyle{
	line:  draw.LineStyle{Color: faint, Width: 1.6, Dashes: []vg.Length{2, 3}},
	glyph: draw.GlyphStyle{Color: faint, Radius: 3.2, Shape: groundedGlyph{lineGlyph{draw.RingGlyph{}, 1.2}}},
}

// bareCurve is what a bare client saw in the same rounds. There is one if all
// strategies shared a setting.
func bareCurve(all []series) (curve, bool) {
	other := func(s series) bool { return s.AtRate().Params.RatePerS != all[0].AtRate().Params.RatePerS }
	if slices.ContainsFunc(all, other) || len(all) == 0 {
		return curve{}, false
	}
	for _, s := range all {
		if summary := s.AtRate(); summary.Reference != nil {
			curve := curveOf(series{Summary: &results.Summary{Params: summary.Params,
				TimingSummary: results.TimingSummary{Service: *summary.Reference}},
				label: bareLabel, style: bareStyle})
			return curve, len(curve.at) > 0
		}
	}
	return curve{}, false
}

// value is the latency at the last sampled percentile that is not above q.
func (c *curve) value(q float64) float64 {
	value := c.at[0].Y
	for _, at := range c.at {
		if at.X <= q+1e-9 {
			value = at.Y
		}
	}
	return value
}
