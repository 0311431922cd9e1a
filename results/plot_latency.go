package results

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// quantileTicks are the labelled places of the percentile axis.
var quantileTicks = []struct {
	q     float64
	label string
}{{0.5, "50 %"}, {0.9, "90 %"}, {0.99, "99 %"}, {0.999, "99.9 %"}, {0.9999, "99.99 %"}}

// nines is the coordinate of the percentile axis: each further nine takes the
// same room.
func nines(q float64) float64 { return -math.Log10(1 - q) }

// curve is one strategy's latency by percentile.
type curve struct {
	series
	q, ns []float64
	marks []int // indices into q of the labelled percentiles
}

// LatencyPlot draws latency by percentile, one line per strategy. A line ends
// where there are too few samples, or too few separate stalls, to go on.
func LatencyPlot(f File) (*Plot, error) {
	var curves []curve
	lo, hi, far := math.Inf(1), 0.0, 0.0
	all := plotted(f)
	for _, s := range all {
		c := curveOf(s)
		if len(c.q) == 0 {
			continue
		}
		lo, hi = min(lo, c.ns[0]), max(hi, c.ns[len(c.ns)-1])
		far = max(far, c.q[len(c.q)-1])
		curves = append(curves, c)
	}
	if len(curves) == 0 {
		return nil, fmt.Errorf("%w: no run has latencies", ErrNothingToPlot)
	}
	// The legend lists strategies as their lines lie, the slowest at the top.
	slices.SortStableFunc(curves, func(a, b curve) int {
		q := min(a.q[len(a.q)-1], b.q[len(b.q)-1], 0.99)
		return -compareFloat(a.at(q), b.at(q))
	})
	const title = "Latency by percentile"
	p := &Plot{title: title, width: 900, height: 540}
	p.height = max(p.height, vg.Length(len(curves))*legendStep+190)
	p.paint = func(c draw.Canvas) { paintLatency(c, f, all, curves, title, lo, hi, far) }
	return p, nil
}

// curveOf samples a strategy's latency up to the last percentile that may be
// shown.
func curveOf(s series) curve {
	c := curve{series: s}
	l := &s.Latency
	last := 0.0
	points := []Percentile{l.P50, l.P90, l.P99, l.P999, l.P9999}
	for i, p := range points {
		if !p.Shown() {
			break
		}
		last = quantileTicks[i].q
	}
	if last == 0 {
		return c
	}
	const perNine = 24
	for i, t := range quantileTicks {
		if t.q > last {
			break
		}
		if i > 0 && l.Merged != nil {
			from, to := nines(quantileTicks[i-1].q), nines(t.q)
			steps := int(math.Ceil((to - from) * perNine))
			for j := 1; j < steps; j++ {
				q := 1 - math.Pow(10, -(from+(to-from)*float64(j)/float64(steps)))
				c.add(q, float64(l.Merged.Quantile(q)))
			}
		}
		c.marks = append(c.marks, len(c.q))
		if l.Merged != nil {
			c.add(t.q, float64(l.Merged.Quantile(t.q)))
		} else {
			c.add(t.q, points[i].Value)
		}
	}
	return c
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
	legendLine  = vg.Length(34)
	legendWidth = vg.Length(190) // widest label
)

func paintLatency(c draw.Canvas, f File, all []series, curves []curve, title string, lo, hi, far float64) {
	simulated := f.Kind == Simulated
	top := heading(c, title, caption(f, all), simulated)
	ls := aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter)
	labels := make([]string, len(curves))
	widest := vg.Length(0)
	for i, k := range curves {
		name := k.label
		if !k.TimingsCount {
			name += " (struck by the audit)"
		}
		labels[i] = fold(ls, name, legendWidth)
		widest = max(widest, ls.Width(labels[i]))
	}
	what := "service time"
	if curves[0].Params.Loop == OpenLoop {
		what = "response time from the intended start"
	}
	if simulated {
		what = "modelled " + what
	}
	fr := frame{
		area: vg.Rectangle{Min: vg.Point{X: 78, Y: 78}, Max: vg.Point{X: c.Max.X - margin - widest - legendLine - 22, Y: top - 14}},
		x:    axis{title: "percentile of requests", lo: nines(0.5), hi: max(nines(far), nines(0.99)) + 0.06},
		y:    timeAxis(what, lo, hi),
	}
	for _, t := range quantileTicks {
		if nines(t.q) <= fr.x.hi {
			fr.x.ticks = append(fr.x.ticks, tick{nines(t.q), t.label})
		}
	}
	if simulated {
		watermark(c, fr.area)
	}
	fr.draw(c)
	for _, k := range curves {
		line := make([]vg.Point, len(k.q))
		for i := range k.q {
			line[i] = fr.point(nines(k.q[i]), math.Log10(k.ns[i]))
		}
		c.StrokeLines(k.style.line, line)
		for _, i := range k.marks {
			c.DrawGlyphNoClip(k.style.glyph, line[i])
		}
	}
	y := fr.area.Max.Y - 6
	x := fr.area.Max.X + 18
	for i, k := range curves {
		h := ls.Height(labels[i])
		mid := y - h/2
		c.StrokeLine2(k.style.line, x, mid, x+legendLine-8, mid)
		c.DrawGlyphNoClip(k.style.glyph, vg.Point{X: x + (legendLine-8)/2, Y: mid})
		c.FillText(ls, vg.Point{X: x + legendLine, Y: mid}, labels[i])
		y -= max(legendStep, h+5)
	}
	note := "All rounds together. A line ends where samples, or separate stalls behind them, are too few."
	c.FillText(aligned(textStyle(captionSize, faint, false), text.XLeft, text.YBottom), vg.Point{X: margin, Y: margin - 4}, note)
}
