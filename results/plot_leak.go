package results

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// verdictStyles tell by shape and colour what became of the declared guarantee.
var verdictStyles = []struct {
	verdicts []string
	name     string
	color    color.NRGBA
	shape    draw.GlyphDrawer
}{
	{[]string{Kept}, "guarantee kept", palette[0], draw.CircleGlyph{}},
	{[]string{Violated}, "guarantee VIOLATED", palette[1], crossGlyph{}},
	{[]string{Undecided, NotExercised}, "undecided or not exercised", palette[4], draw.BoxGlyph{}},
	{[]string{""}, "none declared", palette[6], draw.PyramidGlyph{}},
}

func verdictStyle(verdict string) (name string, g draw.GlyphStyle) {
	for _, s := range verdictStyles {
		for _, v := range s.verdicts {
			if v == verdict {
				return s.name, draw.GlyphStyle{Color: s.color, Radius: dotRadius, Shape: s.shape}
			}
		}
	}
	return "", draw.GlyphStyle{Color: ink, Radius: dotRadius, Shape: draw.SquareGlyph{}}
}

// maxDots is where looking for places begins to take seconds, and reading too.
const maxDots = 100

// maxWidth in points keeps a bitmap below 100 MB.
const maxWidth = vg.Length(2800)

const dotRadius = vg.Length(4)

// leakScale is the vertical axis: logarithmic in percent of the limit, with a
// strip of its own for 0, which no logarithm reaches.
type leakScale struct {
	floor float64 // exponent of the smallest decade shown
	strip float64 // distance from 0 to it, in decades
}

func (s leakScale) at(pct float64) float64 {
	if pct <= 0 {
		return 0
	}
	// Nothing that leaked may sit on the line of what did not.
	return max(s.strip+math.Log10(pct)-s.floor, s.strip/2)
}

// leakDot is a strategy's place in the plot.
type leakDot struct {
	series
	p99 Percentile
	// leak in percent of the limit, certain and possible
	pct, possible float64
}

// leakFigure is a leak plot, laid out.
type leakFigure struct {
	frame  frame
	dots   []leakDot
	points []vg.Point
	labels []string
	places []vg.Rectangle
	// whiskers are two for each dot: of its p99, and of its leak
	whiskers []segment
	omitted  []string
	scale    leakScale
}

// LeakPlot draws what strategies leak against what they cost in p99 latency: a
// labelled dot each. Labels overlap neither each other nor dots.
func LeakPlot(f File) (*Plot, error) { return leakPlot(f, &leakFigure{}) }

// leakPlot lays the plot out in fig.
func leakPlot(f File, fig *leakFigure) (*Plot, error) {
	all := plotted(f)
	for _, s := range all {
		switch {
		case !s.Counts():
			fig.omitted = append(fig.omitted, s.label+" (invalid)")
		case !s.Latency.P99.Shown():
			fig.omitted = append(fig.omitted, s.label+" (p99: "+string(s.Latency.P99.Status)+")")
		default:
			fig.dots = append(fig.dots, leakDot{s, s.Latency.P99, s.Leak.Pct, max(s.Leak.Pct, s.Leak.PossiblePct)})
		}
	}
	if len(fig.dots) == 0 {
		return nil, fmt.Errorf("%w: no run has both a valid leak and a p99", ErrNothingToPlot)
	}
	if len(fig.dots) > maxDots {
		return nil, fmt.Errorf("%d strategies are too many to label in one plot: select at most %d", len(fig.dots), maxDots)
	}
	fig.axes(f)
	// More room is the way out where labels do not fit; four steps double it.
	width, height := vg.Length(900), vg.Length(540)
	for !fig.layout(width, height) {
		if width, height = width*1.19, height*1.19; width > maxWidth {
			return nil, fmt.Errorf("the labels of %d strategies do not fit into one plot: select fewer", len(fig.dots))
		}
	}
	const title = "Leak against latency"
	p := &Plot{title: title, width: width, height: height}
	p.paint = func(c draw.Canvas) {
		heading(c, title, caption(f, all), f.Kind == Simulated)
		fig.draw(c, f.Kind == Simulated)
	}
	return p, nil
}

// axes chooses the scales that hold every dot and its whiskers.
func (g *leakFigure) axes(f File) {
	lo, hi := math.Inf(1), 0.0
	least, most := math.Inf(1), 0.0
	for _, d := range g.dots {
		lo, hi = min(lo, d.p99.Lo), max(hi, d.p99.Hi)
		most = max(most, d.possible)
		for _, v := range []float64{d.pct, d.possible} {
			if v > 0 {
				least = min(least, v)
			}
		}
	}
	if most == 0 {
		least, most = 1, 100 // an empty scale, so that 0 is seen to be little
	}
	g.scale.floor = math.Floor(math.Log10(least))
	top := max(math.Log10(most), g.scale.floor+1) + 0.12
	x := "p99 service time"
	if g.dots[0].Params.Loop == OpenLoop {
		x = "p99 response time from the intended start"
	}
	if f.Kind == Simulated {
		x = "modelled " + x
	}
	g.frame.x = timeAxis(x, max(lo, 1)/1.15, hi*1.15)
	// The strip takes the same share of the height whatever the scale spans.
	g.scale.strip = 0.4 * (top - g.scale.floor)
	shift := g.scale.strip - g.scale.floor
	g.frame.y = axis{title: "leak, in % of the limit", lo: -0.9 * g.scale.strip, hi: shift + top, ticks: []tick{{0, "0 %"}}}
	for _, t := range logTicks(g.scale.floor, top, leakTick) {
		t.at += shift
		g.frame.y.ticks = append(g.frame.y.ticks, t)
	}
}

// leakTick renders a round share in percent.
func leakTick(m float64, exponent int) string {
	if exponent < 0 {
		return strconv.FormatFloat(m*math.Pow10(exponent), 'f', -exponent, 64) + " %"
	}
	return formatCount(int64(m*math.Pow10(exponent))) + " %"
}

var leakLabelStyle = struct{ size, width float64 }{labelSize, 170}

// layout places dots and labels on a canvas of that size, and reports whether
// every label found room.
func (g *leakFigure) layout(width, height vg.Length) bool {
	g.frame.area = vg.Rectangle{Min: vg.Point{X: 84, Y: 108}, Max: vg.Point{X: width - margin - 6, Y: height - 74}}
	s := g.labelStyle()
	g.points, g.labels, g.whiskers = nil, nil, nil
	specs := make([]label, len(g.dots))
	for i, d := range g.dots {
		pt := g.frame.point(math.Log10(max(d.p99.Value, 1)), g.scale.at(d.pct))
		text := fold(s, d.label, vg.Length(leakLabelStyle.width))
		g.points, g.labels = append(g.points, pt), append(g.labels, text)
		specs[i] = label{pt, s.Width(text), blockHeight(s, text)}
		g.whiskers = append(g.whiskers,
			segment{g.frame.point(math.Log10(max(d.p99.Lo, 1)), g.scale.at(d.pct)), g.frame.point(math.Log10(max(d.p99.Hi, 1)), g.scale.at(d.pct))},
			segment{pt, vg.Point{X: pt.X, Y: g.frame.point(0, g.scale.at(d.possible)).Y}})
	}
	var ok bool
	g.places, ok = placeLabels(specs, g.frame.area, dotRadius, g.whiskers)
	return ok
}

func (g *leakFigure) labelStyle() draw.TextStyle { return textStyle(leakLabelStyle.size, ink, false) }

// blockHeight is the height that a text of one or more lines takes, from the
// ascenders of the first to the descenders of the last.
func blockHeight(s draw.TextStyle, txt string) vg.Length {
	e := s.FontExtents()
	return e.Ascent + e.Descent + vg.Length(strings.Count(txt, "\n"))*e.Height
}

func (g *leakFigure) draw(c draw.Canvas, simulated bool) {
	a := g.frame.area
	strip := g.frame.y.place(g.scale.strip/2, a.Min.Y, a.Max.Y)
	c.FillPolygon(subtle, []vg.Point{a.Min, {X: a.Max.X, Y: a.Min.Y}, {X: a.Max.X, Y: strip}, {X: a.Min.X, Y: strip}})
	if simulated {
		watermark(c, a)
	}
	g.frame.draw(c)
	// Zigzag: between 0 and the first decade the scale is broken.
	c.StrokeLine2(draw.LineStyle{Color: white, Width: 2.5}, a.Min.X, strip-3, a.Min.X, strip+3)
	c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.9}, a.Min.X-4, strip-5, a.Min.X+4, strip-1)
	c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.9}, a.Min.X-4, strip+1, a.Min.X+4, strip+5)

	thin := draw.LineStyle{Color: faint, Width: 0.6}
	s := g.labelStyle()
	for i, d := range g.dots {
		if from, to, ok := leader(label{dot: g.points[i]}, g.places[i]); ok {
			c.StrokeLine2(thin, from.X, from.Y, to.X, to.Y)
		}
		_, glyph := verdictStyle(d.Verdict)
		whisker := draw.LineStyle{Color: faded(glyph.Color), Width: 1.4}
		for _, w := range g.whiskers[2*i : 2*i+2] {
			c.StrokeLine2(whisker, w.a.X, w.a.Y, w.b.X, w.b.Y)
		}
	}
	seen := map[string]bool{}
	for i, d := range g.dots {
		name, glyph := verdictStyle(d.Verdict)
		seen[name] = true
		c.DrawGlyphNoClip(glyph, g.points[i])
		e := s.FontExtents()
		// FillText anchors the baseline of the last line.
		c.FillText(s, vg.Point{X: g.places[i].Min.X, Y: g.places[i].Min.Y + e.Descent}, g.labels[i])
	}
	g.legend(c, seen)
}

// faded is a colour for what goes with a dot but must not outshine it.
func faded(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	mix := func(v uint32) uint8 { return uint8((v>>8 + 2*255) / 3) }
	return color.NRGBA{mix(r), mix(g), mix(b), 255}
}

// legend explains the glyphs in use, and names who is not shown.
func (g *leakFigure) legend(c draw.Canvas, seen map[string]bool) {
	s := aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter)
	x, y := g.frame.area.Min.X, g.frame.area.Min.Y-52
	for _, v := range verdictStyles {
		if !seen[v.name] {
			continue
		}
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: v.color, Radius: dotRadius, Shape: v.shape}, vg.Point{X: x + 5, Y: y})
		c.FillText(s, vg.Point{X: x + 14, Y: y}, v.name)
		x += 14 + s.Width(v.name) + 22
	}
	note := "Whiskers: interval of the rounds' p99; upwards from certain to possible leak."
	if len(g.omitted) > 0 {
		note += " Not shown: " + strings.Join(g.omitted, ", ") + "."
	}
	ns := aligned(textStyle(captionSize, faint, false), text.XLeft, text.YTop)
	c.FillText(ns, vg.Point{X: margin, Y: y - 14}, fold(ns, note, c.Max.X-2*margin))
}
