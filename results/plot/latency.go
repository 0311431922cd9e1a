package plot

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/format"
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

// latencyFigure is a latency plot, laid out.
type latencyFigure struct {
	all            []series
	curves         []curve
	labels         []string // of the legend, folded
	note           string
	lo, hi, far    float64
	legend, bottom vg.Length
}

const latencyTitle = "Latency by percentile"

// Latency draws latency by percentile, one line per strategy. A line ends
// where there are too few samples, or too few separate stalls, to go on.
func Latency(f results.File) (*Plot, error) {
	g := latencyFigure{all: plotted(f), lo: math.Inf(1)}
	var notes captions
	common := 0.99 // up to which all lines go
	for _, s := range g.all {
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
		g.lo, g.hi = min(g.lo, c.ns[0]), max(g.hi, c.ns[len(c.ns)-1])
		g.far, common = max(g.far, end), min(common, end)
		g.curves = append(g.curves, c)
	}
	if len(g.curves) == 0 {
		return nil, fmt.Errorf("%w: no run has latencies", ErrNothingToPlot)
	}
	if c, ok := bareCurve(g.all); ok {
		g.curves = append(g.curves, c)
		g.lo, g.hi = min(g.lo, c.ns[0]), max(g.hi, c.ns[len(c.ns)-1])
	}
	if len(g.curves) > maxDots {
		return nil, tooMany(len(g.curves))
	}
	// The legend lists strategies as their lines lie, the slowest at the top.
	slices.SortStableFunc(g.curves, func(a, b curve) int { return -compareFloat(a.at(common), b.at(common)) })
	p := &Plot{title: latencyTitle, width: 900}
	struck := g.styles()
	waited := ""
	if slices.ContainsFunc(g.curves, func(c curve) bool { return c.faint < len(c.q) }) {
		waited = "A line is faint where waiting for a core could explain it."
	}
	note := format.Join(" ", "All rounds together. A line ends where samples, or separate stalls behind them, are too few.", waited, struck, notes.text())
	ns := footnoteStyle()
	g.note = fold(ns, note, p.width-2*margin)
	g.bottom = margin + blockHeight(ns, g.note)
	p.height = max(540, g.legend+150) + g.bottom
	p.paint = func(c draw.Canvas) { g.draw(c, f) }
	return p, nil
}

// styles gives each line its look in the order in which they lie, so that those
// next to each other differ most, and lays the legend out. It returns what a
// mark in the legend means, if there is one.
func (g *latencyFigure) styles() (struck string) {
	ls := legendStyle()
	for i := range g.curves {
		k := &g.curves[i]
		name := k.label
		if k.style = styleOf(i); k.label == bareLabel {
			k.style = bareStyle
		}
		if !k.AtRate().ResponseCounts {
			name += " !"
			struck = "! discarded by the audit, shown for what it is worth."
		}
		label := fold(ls, name, legendWidth)
		g.labels = append(g.labels, label)
		g.legend += max(legendStep, ls.Height(label)+5)
	}
	return struck
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
			c.add(results.NamedQuantiles[i], p.Value)
		}
		return c
	}
	for i, q := range results.CurveQuantiles() {
		if q > results.NamedQuantiles[shown-1] {
			break
		}
		if slices.Contains(results.NamedQuantiles, q) {
			c.marks = append(c.marks, i)
		}
		c.add(q, float64(l.Curve[i]))
	}
	return c
}

// fade notes where the first struck percentile begins.
func (c *curve) fade(points []results.Percentile) {
	c.faint = len(c.q)
	for i, p := range points {
		if !p.Struck {
			continue
		}
		from := 0.0
		if i > 0 {
			from = results.NamedQuantiles[i-1]
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
	glyph: draw.GlyphStyle{Color: faint, Radius: 3.2, Shape: draw.RingGlyph{}},
}

// bareCurve is what a bare client saw in the same rounds. There is one where all
// strategies shared a setting.
func bareCurve(all []series) (curve, bool) {
	if len(all) == 0 || slices.ContainsFunc(all, func(s series) bool { return s.AtRate().Params.RatePerS != all[0].AtRate().Params.RatePerS }) {
		return curve{}, false
	}
	for _, s := range all {
		if r := s.AtRate(); r.Reference != nil {
			c := curveOf(series{Summary: &results.Summary{Params: r.Params, Service: *r.Reference, ResponseCounts: true}, label: bareLabel})
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

const (
	legendStep  = vg.Length(16)
	legendLine  = vg.Length(40)
	legendWidth = vg.Length(190) // widest label
)

func legendStyle() draw.TextStyle {
	return aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter)
}

// axes makes the frame between a top and the legend.
func (g *latencyFigure) axes(c draw.Canvas, simulated bool, top vg.Length) frame {
	what := "service time"
	if g.curves[0].AtRate().Params.Loop == results.OpenLoop {
		what = "response time from the intended start"
	}
	if simulated {
		what = "modelled " + what
	}
	ls := legendStyle()
	widest := vg.Length(0)
	for _, l := range g.labels {
		widest = max(widest, ls.Width(l))
	}
	fr := frame{
		area: vg.Rectangle{Min: vg.Point{X: 78, Y: g.bottom + 52}, Max: vg.Point{X: c.Max.X - margin - widest - legendLine - 22, Y: top - 14}},
		x:    axis{title: "percentile of requests", lo: results.Nines(0.5), hi: max(results.Nines(g.far), results.Nines(0.99)) + 0.06},
		y:    timeAxis(what, g.lo, g.hi),
	}
	for i, q := range results.NamedQuantiles {
		if results.Nines(q) <= fr.x.hi {
			fr.x.ticks = append(fr.x.ticks, tick{results.Nines(q), quantileLabels[i]})
		}
	}
	return fr
}

func (g *latencyFigure) draw(c draw.Canvas, f results.File) {
	simulated := f.Kind == results.Simulated
	top := heading(c, latencyTitle, caption(f, g.all), simulated)
	fr := g.axes(c, simulated, top)
	if simulated {
		watermark(c, fr.area)
	}
	fr.draw(c)
	lines := make([][]vg.Point, len(g.curves))
	for n, k := range g.curves {
		for i := range k.q {
			lines[n] = append(lines[n], fr.point(results.Nines(k.q[i]), math.Log10(k.ns[i])))
		}
		c.StrokeLines(k.style.line, lines[n][:k.faint])
		if k.faint < len(lines[n]) {
			line := k.style.line
			line.Color = pale(line.Color)
			c.StrokeLines(line, lines[n][max(k.faint-1, 0):])
		}
	}
	// Markers come last, on a white ground: what tells lines apart must not
	// drown in the lines of others.
	for n, k := range g.curves {
		for _, i := range k.marks {
			style := k.style
			if i >= k.faint {
				style.glyph.Color = pale(style.glyph.Color)
			}
			style.mark(&c, lines[n][i])
		}
	}
	ls := legendStyle()
	x, y := fr.area.Max.X+18, fr.area.Max.Y-6
	for i, k := range g.curves {
		h := ls.Height(g.labels[i])
		mid := y - h/2
		c.StrokeLine2(k.style.line, x, mid, x+legendLine-8, mid)
		k.style.mark(&c, vg.Point{X: x + (legendLine-8)/2, Y: mid})
		c.FillText(ls, vg.Point{X: x + legendLine, Y: mid}, g.labels[i])
		y -= max(legendStep, h+5)
	}
	footnote(c, g.note, g.bottom)
}
