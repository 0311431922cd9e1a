package sim

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"sync"
	"time"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Okabe and Ito's colours, which colour-blind readers can tell apart.
var palette = []color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x22, 0x22, 0x22, 0xff},
}

var (
	ink   = color.NRGBA{0x22, 0x22, 0x22, 0xff}
	faint = color.NRGBA{0x66, 0x66, 0x66, 0xff}
	grid  = color.NRGBA{0xe2, 0xe2, 0xe2, 0xff}
	away  = color.NRGBA{0xf6, 0xee, 0xd8, 0xff} // behind an outage
)

var faces = sync.OnceValue(func() *font.Cache {
	f, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		panic("embedded font: " + err.Error()) // the bytes are compiled in
	}
	return font.NewCache(font.Collection{{Font: font.Font{Typeface: "Liberation", Variant: "Sans"}, Face: f}})
})

func style(size float64, c color.Color, x text.XAlignment, y text.YAlignment) draw.TextStyle {
	return draw.TextStyle{
		Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: font.Length(size)},
		Handler: text.Plain{Fonts: faces()}, XAlign: x, YAlign: y,
	}
}

// line is one curve of a panel.
type line struct {
	name string
	at   func(i int) float64
}

// panel is one quantity over time.
type panel struct {
	title string
	lines []line
}

// Measures of the drawing, in points.
const (
	plotWidth   = vg.Length(760)
	panelHeight = vg.Length(150)
	headHeight  = vg.Length(58)
	leftRoom    = vg.Length(74)
	rightRoom   = vg.Length(190)
	plotDPI     = 144
)

// Plot draws a series as a column of panels over virtual time, and returns it as
// SVG and as PNG.
func (s *Series) Plot() (svg, png []byte, err error) {
	panels := s.panels()
	height := headHeight + panelHeight*vg.Length(len(panels)) + 24
	v := vgsvg.New(plotWidth, height)
	s.paint(draw.New(v), panels)
	var a, b bytes.Buffer
	if _, err := v.WriteTo(&a); err != nil {
		return nil, nil, fmt.Errorf("render svg: %w", err)
	}
	p := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(plotWidth, height), vgimg.UseDPI(plotDPI), vgimg.UseBackgroundColor(color.White))}
	s.paint(draw.New(p), panels)
	if _, err := p.WriteTo(&b); err != nil {
		return nil, nil, fmt.Errorf("render png: %w", err)
	}
	return a.Bytes(), b.Bytes(), nil
}

func (s *Series) panels() []panel {
	x := s.Samples
	counter := func(f func(c *Counter) float64) (out []line) {
		for k, name := range s.Counters {
			out = append(out, line{name, func(i int) float64 { return f(&x[i].Counters[k]) }})
		}
		return out
	}
	out := []panel{
		// What subjects were given at the start would hide what happened since.
		{"used by calls, " + s.Unit + " in the window", []line{{"all subjects", func(i int) float64 { return float64(x[i].Usage - x[i].Fill) }}}},
		// One axis would hide a leak behind a thousand times as many false rejects.
		{"leak so far, " + s.Unit, []line{{"certain leak", func(i int) float64 { return float64(x[i].Leak) }}}},
		{"false rejects so far, requests", []line{{"certain ones", func(i int) float64 { return float64(x[i].FalseRejects) }}}},
	}
	var hits []line
	for k, name := range s.Tiers {
		hits = append(hits, line{name, func(i int) float64 {
			before, issued := int64(0), x[i].Issued-x[i].InFlight
			if i > 0 {
				before, issued = x[i-1].Hits[k], issued-(x[i-1].Issued-x[i-1].InFlight)
			}
			return 100 * float64(x[i].Hits[k]-before) / float64(max(1, issued))
		}})
	}
	if len(hits) > 0 {
		out = append(out, panel{"decided by, % of the interval", hits})
	}
	if len(s.Counters) > 0 {
		out = append(out,
			panel{"drift, " + s.Unit + " per tracked subject", counter(func(c *Counter) float64 { return float64(c.Size) / float64(max(1, c.Readings)) })},
			s.staleness(counter))
	}
	return out
}

// staleness is drawn in a unit that suits it. The worst subject is in the table:
// one that never heals makes it a straight line.
func (s *Series) staleness(counter func(func(c *Counter) float64) []line) panel {
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
	return panel{"staleness, " + name + ", mean of tracked subjects", counter(func(c *Counter) float64 { return float64(c.MeanNS) / float64(unit) })}
}

func (s *Series) paint(c draw.Canvas, panels []panel) {
	top := c.Max.Y - 14
	c.FillText(style(14, ink, text.XLeft, text.YTop), vg.Point{X: 16, Y: top}, s.Strategy+" over virtual time")
	c.FillText(style(9.5, faint, text.XLeft, text.YTop), vg.Point{X: 16, Y: top - 20},
		s.subtitle())
	if len(s.Samples) == 0 {
		c.FillText(style(11, faint, text.XLeft, text.YTop), vg.Point{X: leftRoom, Y: top - 60}, "no samples")
		return
	}
	end := float64(s.Samples[len(s.Samples)-1].AtNS)
	for i, p := range panels {
		max := c.Max.Y - headHeight - panelHeight*vg.Length(i)
		s.panel(c, p, vg.Rectangle{
			Min: vg.Point{X: leftRoom, Y: max - panelHeight + 24}, Max: vg.Point{X: plotWidth - rightRoom, Y: max - 16},
		}, end)
	}
}

func (s *Series) subtitle() string {
	text := fmt.Sprintf("SIMULATED, latencies are modelled · counters of %d subjects are read · %d samples", s.Tracked, len(s.Samples))
	for _, o := range s.Outages {
		text += fmt.Sprintf(" · %s away from %v to %v (shaded)", o.Store, time.Duration(o.FromNS), time.Duration(o.ToNS))
	}
	return text
}

func (s *Series) panel(c draw.Canvas, p panel, area vg.Rectangle, end float64) {
	lo, hi := 0.0, 0.0
	for _, l := range p.lines {
		for i := range s.Samples {
			lo, hi = math.Min(lo, l.at(i)), math.Max(hi, l.at(i))
		}
	}
	step := niceStep(hi - lo)
	lo, hi = math.Floor(lo/step)*step, math.Max(math.Ceil(hi/step)*step, lo+step)
	x := func(at float64) vg.Length { return area.Min.X + vg.Length(at/end)*(area.Max.X-area.Min.X) }
	y := func(v float64) vg.Length { return area.Min.Y + vg.Length((v-lo)/(hi-lo))*(area.Max.Y-area.Min.Y) }
	c.FillText(style(10, ink, text.XLeft, text.YBottom), vg.Point{X: area.Min.X, Y: area.Max.Y + 3}, p.title)
	for _, o := range s.Outages {
		from, to := x(float64(o.FromNS)), min(x(float64(o.ToNS)), area.Max.X)
		c.FillPolygon(away, []vg.Point{{X: from, Y: area.Min.Y}, {X: to, Y: area.Min.Y}, {X: to, Y: area.Max.Y}, {X: from, Y: area.Max.Y}})
	}
	thin := draw.LineStyle{Color: grid, Width: 0.6}
	for v := lo; v <= hi+step/2; v += step {
		c.StrokeLine2(thin, area.Min.X, y(v), area.Max.X, y(v))
		c.FillText(style(9, faint, text.XRight, text.YCenter), vg.Point{X: area.Min.X - 5, Y: y(v)}, short(v))
	}
	for at := time.Duration(0); float64(at) <= end*1.0001; at += timeStep(time.Duration(end)) {
		c.StrokeLine2(thin, x(float64(at)), area.Min.Y, x(float64(at)), area.Max.Y)
		c.FillText(style(9, faint, text.XCenter, text.YTop), vg.Point{X: x(float64(at)), Y: area.Min.Y - 3}, shortTime(at))
	}
	for k, l := range p.lines {
		ls := draw.LineStyle{Color: palette[k%len(palette)], Width: 1.4}
		if k >= len(palette)/2 {
			ls.Dashes = []vg.Length{5, 2}
		}
		pts := make([]vg.Point, len(s.Samples))
		for i := range s.Samples {
			pts[i] = vg.Point{X: x(float64(s.Samples[i].AtNS)), Y: y(l.at(i))}
		}
		c.StrokeLines(ls, pts)
		at := area.Max.Y - vg.Length(8+14*k)
		c.StrokeLine2(ls, area.Max.X+10, at, area.Max.X+28, at)
		c.FillText(style(9, ink, text.XLeft, text.YCenter), vg.Point{X: area.Max.X + 33, Y: at}, l.name)
	}
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

// short prints a tick's value.
func short(v float64) string {
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

func shortTime(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
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
