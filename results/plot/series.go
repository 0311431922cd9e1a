package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/results"
)

// away is the ground behind an outage.
var away = color.NRGBA{0xf6, 0xee, 0xd8, 0xff}

// line is one curve of a panel.
type line struct {
	name string
	at   func(i int) float64 // of sample i
}

// panel is one quantity over time.
type panel struct {
	title string
	lines []line
}

// Measures of a drawing of panels, in points.
const (
	seriesWidth = vg.Length(760)
	panelHeight = vg.Length(150)
	seriesHead  = vg.Length(58)
	seriesLeft  = vg.Length(74)
	seriesKey   = vg.Length(37) // from a panel to the names of its lines
)

// Series draws a series as a column of panels over virtual time.
func Series(s results.Series) (*Plot, error) {
	if len(s.Samples) == 0 {
		return nil, fmt.Errorf("%w: the series of %s has no samples", ErrNothingToPlot, s.Strategy)
	}
	panels := seriesPanels(&s)
	p := &Plot{title: drawable(s.Strategy) + " over virtual time", width: seriesWidth}
	caption := fold(captionStyle(true), drawable(seriesCaption(&s)), seriesWidth-2*margin)
	head := max(seriesHead, margin+titleSize+12+captionStyle(true).Height(caption))
	right := seriesWidth - margin - seriesKey - widestName(panels)
	p.height = head + panelHeight*vg.Length(len(panels)) + 24
	p.paint = func(c draw.Canvas) {
		heading(c, p.title, caption, true)
		for i, x := range panels {
			top := c.Max.Y - head - panelHeight*vg.Length(i)
			drawPanel(c, &s, x, vg.Rectangle{
				Min: vg.Point{X: seriesLeft, Y: top - panelHeight + 24}, Max: vg.Point{X: right, Y: top - 16},
			})
		}
	}
	return p, nil
}

// widestName is the room that the names of lines take, at most a third of a drawing.
func widestName(panels []panel) vg.Length {
	widest := vg.Length(0)
	for _, p := range panels {
		for _, l := range p.lines {
			widest = max(widest, textStyle(labelSize, ink, false).Width(drawable(l.name)))
		}
	}
	return min(widest, seriesWidth/3)
}

func seriesCaption(s *results.Series) string {
	text := fmt.Sprintf("SIMULATED, latencies are modelled · counters of %d subjects are read · %d samples", s.Tracked, len(s.Samples))
	for _, o := range s.Outages {
		text += fmt.Sprintf(" · %s away from %v to %v (shaded)", o.Store, time.Duration(o.FromNS), time.Duration(o.ToNS))
	}
	return text
}

func seriesPanels(s *results.Series) []panel {
	x := s.Samples
	counter := func(f func(c *results.Counter) float64) (out []line) {
		for k, name := range s.Counters {
			out = append(out, line{name, func(i int) float64 { return f(&x[i].Counters[k]) }})
		}
		return out
	}
	out := []panel{
		// What subjects were given at the start would hide what happened since.
		{"consumed by calls, " + s.Unit + " in the window", []line{{"all subjects", func(i int) float64 { return float64(x[i].Usage - x[i].Fill) }}}},
		// One axis would hide a leak behind a thousand times as many false rejects.
		{"leak so far, " + s.Unit, []line{{"confirmed", func(i int) float64 { return float64(x[i].Leak) }}}},
		{"false rejects so far, requests", []line{{"confirmed", func(i int) float64 { return float64(x[i].FalseRejects) }}}},
	}
	if slices.ContainsFunc(x, func(x results.Sample) bool { return x.Keys > 0 }) {
		out = append(out, panel{"keys in Redis", []line{{"not expired", func(i int) float64 { return float64(x[i].Keys) }}}})
	}
	if len(s.Tiers) > 0 {
		out = append(out, panel{"decided by, % of the interval", hitLines(s)})
	}
	if len(s.Counters) > 0 {
		out = append(out,
			panel{"drift, " + s.Unit + " per tracked subject, signed", counter(func(c *results.Counter) float64 { return float64(c.Drift) / float64(max(1, c.Readings)) })},
			staleness(s, counter))
	}
	return out
}

// hitLines are the shares of decisions by tier, of those since the sample before.
func hitLines(s *results.Series) (out []line) {
	x := s.Samples
	for k, name := range s.Tiers {
		out = append(out, line{name, func(i int) float64 {
			before, decided := int64(0), x[i].Issued-x[i].InFlight
			if i > 0 {
				before, decided = x[i-1].Hits[k], decided-(x[i-1].Issued-x[i-1].InFlight)
			}
			return 100 * float64(x[i].Hits[k]-before) / float64(max(1, decided))
		}})
	}
	return out
}

// staleness is drawn in a unit that suits it. The worst subject is in the record:
// one that never heals makes it a straight line.
func staleness(s *results.Series, counter func(func(c *results.Counter) float64) []line) panel {
	var longest int64
	for i := range s.Samples {
		for k := range s.Samples[i].Counters {
			longest = max(longest, s.Samples[i].Counters[k].MeanNS)
		}
	}
	unit, name := time.Second, "s"
	switch {
	case longest > int64(2*time.Hour):
		unit, name = time.Hour, "h"
	case longest > int64(2*time.Minute):
		unit, name = time.Minute, "min"
	case longest < int64(time.Second):
		unit, name = time.Millisecond, "ms"
	}
	return panel{"staleness, " + name + ", mean of tracked subjects",
		counter(func(c *results.Counter) float64 { return float64(c.MeanNS) / float64(unit) })}
}

// drawPanel draws one panel in its area, and names its lines to the right.
func drawPanel(c draw.Canvas, s *results.Series, p panel, area vg.Rectangle) {
	f := frame{area: area, x: spanAxis(time.Duration(s.Samples[len(s.Samples)-1].AtNS)), y: valueAxis(p, len(s.Samples))}
	for _, o := range s.Outages {
		from, to := f.point(float64(o.FromNS), f.y.lo), f.point(min(float64(o.ToNS), f.x.hi), f.y.hi)
		c.FillPolygon(away, []vg.Point{from, {X: to.X, Y: from.Y}, to, {X: from.X, Y: to.Y}})
	}
	f.draw(c)
	c.FillText(aligned(textStyle(tickSize, ink, true), text.XLeft, text.YBottom), vg.Point{X: area.Min.X, Y: area.Max.Y + 3}, drawable(p.title))
	for k, l := range p.lines {
		style := styleOf(k).line
		points := make([]vg.Point, len(s.Samples))
		for i := range s.Samples {
			points[i] = f.point(float64(s.Samples[i].AtNS), l.at(i))
		}
		c.StrokeLines(style, points)
		at := area.Max.Y - vg.Length(8+14*k)
		c.StrokeLine2(style, area.Max.X+10, at, area.Max.X+32, at)
		c.FillText(aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter), vg.Point{X: area.Max.X + seriesKey, Y: at}, drawable(l.name))
	}
}

// valueAxis is linear, includes 0, and ends at round values.
func valueAxis(p panel, samples int) axis {
	lo, hi := 0.0, 0.0
	for _, l := range p.lines {
		for i := range samples {
			lo, hi = math.Min(lo, l.at(i)), math.Max(hi, l.at(i))
		}
	}
	step := niceStep(hi - lo)
	a := axis{lo: math.Floor(lo/step) * step}
	a.hi = math.Max(math.Ceil(hi/step)*step, a.lo+step)
	for v := a.lo; v <= a.hi+step/2; v += step {
		a.ticks = append(a.ticks, tick{at: v, label: tickValue(v)})
	}
	return a
}

// spanAxis is linear from the start to end.
func spanAxis(end time.Duration) axis {
	a := axis{hi: math.Max(float64(end), 1)}
	step := timeStep(end)
	for at := time.Duration(0); float64(at) <= a.hi*1.0001; at += step {
		a.ticks = append(a.ticks, tick{at: float64(at), label: tickTime(at)})
	}
	return a
}

// niceStep is a round distance of ticks.
func niceStep(span float64) float64 {
	if !(span > 0) {
		return 1
	}
	raw := span / 4
	p := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= raw {
			return m * p
		}
	}
	return 10 * p
}

// tickValue prints a tick's value, e.g. "20 k".
func tickValue(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 1e9:
		return fmt.Sprintf("%g G", v/1e9)
	case a >= 1e6:
		return fmt.Sprintf("%g M", v/1e6)
	case a >= 1e4:
		return fmt.Sprintf("%g k", v/1e3)
	default:
		return fmt.Sprintf("%.4g", v)
	}
}

// timeStep is a round distance of ticks on the axis of time.
func timeStep(end time.Duration) time.Duration {
	const day = 24 * time.Hour
	for _, d := range []time.Duration{
		time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 5 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, day, 2 * day, 5 * day, 10 * day, 30 * day, 90 * day,
	} {
		if end/d <= 10 {
			return d
		}
	}
	return 365 * day
}

// tickTime prints a tick's time, e.g. "6 h".
func tickTime(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return "0"
	case d >= day && d%day == 0:
		return fmt.Sprintf("%d d", d/day)
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	default:
		return d.String()
	}
}
