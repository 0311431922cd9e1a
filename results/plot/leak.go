package plot

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

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
	p99 results.Percentile
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
	scale    leakScale
	note     string
	bottom   vg.Length // where the note begins
}

const leakTitle = "Leak against latency"

// Leak draws what strategies leak against what they cost in p99 latency: a
// labelled dot each. Labels overlap neither each other nor dots.
func Leak(f results.File) (*Plot, error) { return leakPlot(f, &leakFigure{}) }

// add gives a strategy its dot. One that stands on fewer rounds than others, or
// on a p99 that does not count, is marked and named.
func (g *leakFigure) add(s series, notes *captions) {
	if s.Invalid > 0 {
		notes.add("Some rounds left out", s.label, "invalid")
	}
	if !s.AtRate().ResponseCounts {
		notes.add("Faint dot", s.label, "the audit discarded its p99")
	} else if s.Latency().P99.Struck {
		notes.add("Faint dot", s.label, "waiting for a core could explain its p99")
	}
	g.dots = append(g.dots, leakDot{s, s.Latency().P99, s.Leak.PctOfLimit, max(s.Leak.PctOfLimit, s.Leak.PossiblePctOfLimit)})
}

// leakPlot lays the plot out in fig.
func leakPlot(f results.File, fig *leakFigure) (*Plot, error) {
	all := plotted(f)
	var notes captions
	for _, s := range all {
		switch {
		case !s.Counts():
			notes.add("No dot", s.label, "invalid")
		case !s.Latency().P99.Shown():
			notes.add("No dot", s.label, "p99: "+why(s.Latency().P99))
		default:
			fig.add(s, &notes)
		}
	}
	if len(fig.dots) == 0 {
		return nil, fmt.Errorf("%w: no run has both a valid leak and a p99", ErrNothingToPlot)
	}
	if len(fig.dots) > maxDots {
		return nil, tooMany(len(fig.dots))
	}
	fig.note = format.Join(" ", "Whiskers: interval of the rounds' p99, their range where fewer than 6 count; upwards from certain to possible leak.", notes.text())
	fig.axes(f)
	// More room is the way out where labels do not fit; four steps double it.
	width, height := vg.Length(900), vg.Length(540)
	for !fig.layout(width, height) {
		if width, height = width*1.19, height*1.19; width > maxWidth {
			return nil, fmt.Errorf("the labels of %d strategies do not fit into one plot: select fewer", len(fig.dots))
		}
	}
	p := &Plot{title: leakTitle, width: width, height: height + fig.bottom - margin}
	p.paint = func(c draw.Canvas) {
		heading(c, leakTitle, caption(f, all), f.Kind == results.Simulated)
		fig.draw(c, f.Kind == results.Simulated)
	}
	return p, nil
}

// axes chooses the scales that hold every dot and its whiskers.
func (g *leakFigure) axes(f results.File) {
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
	if g.dots[0].AtRate().Params.Loop == results.OpenLoop {
		x = "p99 response time from the intended start"
	}
	if f.Kind == results.Simulated {
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
	return format.Count(int64(m*math.Pow10(exponent))) + " %"
}

var leakLabelStyle = struct{ size, width float64 }{labelSize, 170}

// layout places dots and labels on a canvas of that size, to which the note at
// the bottom adds its own height, and reports whether every label found room.
func (g *leakFigure) layout(width, height vg.Length) bool {
	ns := footnoteStyle()
	note := fold(ns, g.note, width-2*margin)
	g.bottom = margin + blockHeight(ns, note)
	g.frame.area = vg.Rectangle{Min: vg.Point{X: 84, Y: g.bottom + 76}, Max: vg.Point{X: width - margin - 6, Y: g.bottom + height - 92}}
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
