package plot

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/answer"
)

// maxHeight in points keeps a bitmap below 100 MB.
const maxHeight = vg.Length(4000)

const dotRadius = vg.Length(4.2)

// leakDot is a strategy's place in the plot.
type leakDot struct {
	series
	p99 results.Percentile
	// leak in percent of the limit, certain and possible
	pct, possible float64
	hollow        bool // its p99 may not be believed
	text          string
	at            vg.Point
	// left and right end of the whisker of p99, and upper end of that of the leak
	left, right, up vg.Length
}

// clean reports whether the dot stands among those without a certain leak.
func (d *leakDot) clean() bool { return d.pct == 0 }

// leakFigure is a leak plot, laid out: above a scatter of strategies that leak, below a
// row for each that does not.
type leakFigure struct {
	leaks, rows frame // an area without height where there are none
	dots        []leakDot
	scattered   []int // indices of dots that leak
	places      []vg.Rectangle
	scale       percentScale
	note        []string // lines
	legendAt    vg.Length
	frontier    []vg.Point
	width       vg.Length
	height      vg.Length
}

const (
	leakTitle = "Leak against latency"
	rowHeight = vg.Length(15)
	rowsAbove = vg.Length(12) // from the edge of the rows to the first
)

// Leak draws what strategies leak against what they cost in p99 latency, with the
// frontier of those that none beats in both. Strategies without a leak have a row each.
// Shapes and colours tell the groups of package answer; a ring marks wrong rejections.
// Labels overlap neither each other nor dots.
func Leak(f results.File) (*Plot, error) { return leakPlot(f, &leakFigure{}) }

// leakPlot lays the plot out in g.
func leakPlot(f results.File, g *leakFigure) (*Plot, error) {
	all := plotted(f)
	var notes captions
	for _, s := range all {
		g.add(s, &notes)
	}
	if len(g.dots) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNothingToPlot, without(all, "no run has both a valid leak and latencies"))
	}
	if len(g.dots) > maxDots {
		return nil, tooMany(len(g.dots))
	}
	g.sort()
	simulated := f.Kind == results.Simulated
	g.axes(simulated)
	g.width = 900
	note := "Whiskers: interval of p99 over rounds, if 6 or more are kept; upwards from certain to possible leak."
	if len(g.frontierDots()) > 1 && len(g.scattered) > 0 {
		note += " Dashed: the frontier, those that no strategy beats in both leak and p99; without those that reject wrongly, count per process, or are unusable."
	}
	txt := format.Join(" ", note, notes.text())
	caption := fold(captionStyle(simulated), caption(f, all), g.width-2*margin)
	head := margin + titleSize + 12 + captionStyle(simulated).Height(caption)
	// More room is the way out where labels do not fit.
	for height := vg.Length(230); !g.layout(height, head, txt); height *= 1.25 {
		if height > maxHeight {
			return nil, fmt.Errorf("the labels of %d strategies do not fit into one plot: select fewer", len(g.dots))
		}
	}
	p := &Plot{title: leakTitle, desc: g.describe(), width: g.width, height: g.height}
	p.paint = func(c draw.Canvas) {
		heading(c, leakTitle, caption, simulated)
		g.draw(c, simulated)
	}
	return p, nil
}

// add gives a strategy its dot. One that stands on fewer rounds than others, or on a
// p99 that does not count, is marked and named.
func (g *leakFigure) add(s series, notes *captions) {
	p := s.Latency().P99
	switch {
	case !s.Counts():
		notes.add("No dot", s.label, "invalid")
		return
	case p.Status == results.NoSamples || p.Status == results.NotMeasurable:
		notes.add("No dot", s.label, "p99: "+why(p))
		return
	}
	d := leakDot{series: s, p99: p, pct: s.Leak.PctOfLimit, possible: max(s.Leak.PctOfLimit, s.Leak.PossiblePctOfLimit)}
	if p.Coverage == 0 { // fewer than 6 rounds say nothing about how much it varies
		d.p99.Lo, d.p99.Hi = p.Value, p.Value
	}
	switch {
	case !p.Shown():
		d.hollow, d.p99.Lo, d.p99.Hi = true, p.Value, p.Value
		notes.add("Hollow, at the longest request", s.label, "p99: "+why(p))
	case 2*p.Waited > p.Rounds:
		d.hollow = true
		notes.add("Hollow", s.label, "waiting for a core could explain its p99 in most rounds")
	}
	if s.Invalid > 0 {
		notes.add("Some rounds left out", s.label, "invalid")
	}
	d.text = s.label
	if pct := s.FalseRejects.PctOfValid; pct > 0 {
		d.text += fmt.Sprintf(", rejects %s wrongly", format.Pct(pct))
	}
	if d.clean() && d.possible > 0 {
		d.text += fmt.Sprintf(", leak up to %s possible", format.Pct(d.possible))
	}
	if s.PerProcess {
		d.text += ", per process"
	}
	g.dots = append(g.dots, d)
}

// sort puts dots in the order of the rows: by group, and in each by p99.
func (g *leakFigure) sort() {
	groups := answer.Groups()
	slices.SortStableFunc(g.dots, func(a, b leakDot) int {
		if d := slices.Index(groups, a.group) - slices.Index(groups, b.group); d != 0 {
			return d
		}
		return compareFloat(a.p99.Value, b.p99.Value)
	})
	for i := range g.dots {
		if !g.dots[i].clean() {
			g.scattered = append(g.scattered, i)
		}
	}
}

// axes chooses the scales that hold every dot and its whiskers. Baselines may lie to
// the left of what others need.
func (g *leakFigure) axes(simulated bool) {
	lo, hi := math.Inf(1), 0.0
	extent := func(d *leakDot) { lo, hi = min(lo, d.p99.Lo), max(hi, d.p99.Hi) }
	var leaks []float64
	for i := range g.dots {
		d := &g.dots[i]
		if d.group != answer.Baseline {
			extent(d)
		}
		if !d.clean() {
			leaks = append(leaks, d.pct, d.possible)
		}
	}
	if hi == 0 {
		for i := range g.dots {
			extent(&g.dots[i])
		}
	}
	x := "p99 service time"
	if g.dots[0].AtRate().Params.Loop == results.OpenLoop {
		x = "p99 response time"
	}
	if simulated {
		x = "modelled " + x
	}
	scale := timeAxis(x, max(lo, 1)/1.25, hi*1.25)
	g.rows.x, g.leaks.x = scale, scale
	if len(leaks) > 0 {
		g.leaks.y, g.scale = percentAxis("leak, in % of the limit", leaks)
		// What does not leak has rows of its own.
		g.leaks.y.lo = g.scale.strip - 0.08*(g.leaks.y.hi-g.scale.strip)
		g.leaks.y.ticks = slices.DeleteFunc(g.leaks.y.ticks, func(t tick) bool { return t.at < g.leaks.y.lo })
	}
}

// frontierDots are those that no other beats in both leak and p99, the fastest first.
func (g *leakFigure) frontierDots() (out []int) {
	var order []int
	for i := range g.dots {
		d := &g.dots[i]
		if d.group != answer.Baseline && d.group != answer.Unusable && d.FalseRejects.Count == 0 && !d.PerProcess && d.p99.Shown() {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if c := compareFloat(g.dots[a].p99.Value, g.dots[b].p99.Value); c != 0 {
			return c
		}
		return compareFloat(g.dots[a].pct, g.dots[b].pct)
	})
	least := math.Inf(1)
	for _, i := range order {
		if g.dots[i].pct < least {
			least = g.dots[i].pct
			out = append(out, i)
		}
	}
	return out
}

// describe says what the plot shows.
func (g *leakFigure) describe() string {
	txt := fmt.Sprintf("Leak in percent of the limit against p99 latency of %s.", format.Plural(int64(len(g.dots)), "strategy", "strategies"))
	for _, group := range answer.Groups() {
		n, first := int64(0), (*leakDot)(nil)
		for i := range g.dots {
			if d := &g.dots[i]; d.group == group {
				if n++; first == nil {
					first = d
				}
			}
		}
		if n > 0 {
			txt += fmt.Sprintf(" %s: %d, of these %s has the lowest p99, %s.", upperFirst(string(group)), n, first.label, format.NS(first.p99.Value))
		}
	}
	var worst *leakDot
	for _, i := range g.scattered {
		if d := &g.dots[i]; d.group != answer.Baseline && (worst == nil || d.pct > worst.pct) {
			worst = d
		}
	}
	if worst != nil {
		txt += fmt.Sprintf(" The largest leak is %s of the limit, of %s.", format.Pct(worst.pct), worst.label)
	}
	return drawable(txt)
}
