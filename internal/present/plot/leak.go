package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

const (
	leakTitle  = "Leak and latency"
	dotRadius  = vg.Length(4.2)
	rowHeight  = vg.Length(18)
	rowsMargin = vg.Length(6)   // between the edge of a panel and its rows
	leakNames  = vg.Length(230) // of a strategy's name, at most
	legendLine = vg.Length(14)
)

// leakRow is a strategy's row in the plot.
type leakRow struct {
	series
	p99 results.Percentile
	// leak in percent of the limit, certain and possible
	pct, possible float64
	hollow        bool   // its p99 may not be believed
	missing       string // why it has no p99
	frontier      bool   // no other beats it in both leak and p99
	name          string
	at            vg.Length // height of its middle
}

// leakFigure is a leak plot, laid out: a panel for the leak, and next to it one for p99.
type leakFigure struct {
	rows      []leakRow
	leak, p99 frame
	scale     percentScale
	note      string
	legendAt  vg.Length
	width     vg.Length
	height    vg.Length
}

// Leak draws what strategies leak next to what they cost in p99 latency, in a row for each.
// Shapes and colours tell the groups of package answer; a ring marks wrong rejections. The
// names of those that none beats in both are bold.
func Leak(f results.File) (*Plot, error) {
	all := plotted(f)
	g := leakFigure{width: 900}
	var notes captions
	for _, s := range all {
		g.add(s, &notes)
	}
	if len(g.rows) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNothingToPlot, "no run has a valid leak")
	}
	if len(g.rows) > maxDots {
		return nil, tooMany(len(g.rows))
	}
	simulated := f.Kind == results.Simulated
	g.sort()
	g.axes(simulated)
	note := "Lines: from no leak to the certain one, paler on to the possible one; the interval of p99 over rounds, if 6 or more are kept."
	if g.markFrontier() {
		note += " Bold: no strategy beats it in both leak and p99; not asked of those that reject wrongly, count per process, or are unusable."
	}
	g.note = format.Join(" ", note, notes.text())
	caption := fold(captionStyle(simulated), caption(f, all), g.width-2*margin)
	g.layout(margin + titleSize + 12 + captionStyle(simulated).Height(caption))
	p := &Plot{title: leakTitle, desc: g.describe(), width: g.width, height: g.height}
	p.paint = func(c draw.Canvas) {
		heading(c, leakTitle, caption, simulated)
		g.draw(c, simulated)
	}
	return p, nil
}

// add gives a strategy its row. One that stands on fewer rounds than others, or on a
// p99 that does not count, is marked and named. One without a p99 says why.
func (g *leakFigure) add(s series, notes *captions) {
	p := s.Latency().P99
	if !s.Counts() {
		notes.add("Not shown", s.label, "invalid")
		return
	}
	d := leakRow{series: s, p99: p, pct: s.Leak.PctOfLimit, possible: max(s.Leak.PctOfLimit, s.Leak.PossiblePctOfLimit)}
	if p.Coverage == 0 { // fewer than 6 rounds say nothing about how much it varies
		d.p99.Lo, d.p99.Hi = p.Value, p.Value
	}
	switch {
	case p.Status == results.NoSamples || p.Status == results.NotMeasurable:
		d.missing = why(p)
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
	d.name = s.label
	if pct := s.FalseRejects.PctOfValid; pct > 0 {
		d.name += fmt.Sprintf(", rejects %s wrongly", format.Pct(pct))
	}
	if d.pct == 0 && d.possible > 0 {
		d.name += fmt.Sprintf(", leak up to %s possible", format.Pct(d.possible))
	}
	if s.PerProcess {
		d.name += ", per process"
	}
	d.name = fold(leakText(), d.name, leakNames)
	g.rows = append(g.rows, d)
}

// sort puts rows in the order of the groups, and in each by p99.
func (g *leakFigure) sort() {
	groups := answer.Groups()
	slices.SortStableFunc(g.rows, func(a, b leakRow) int {
		if d := slices.Index(groups, a.group) - slices.Index(groups, b.group); d != 0 {
			return d
		}
		if a.missing != b.missing {
			return strings.Compare(a.missing, b.missing) // those with a p99 first
		}
		return compareFloat(a.p99.Value, b.p99.Value)
	})
}

// axes chooses the scales that hold every row. Baselines may lie to the left of what others
// need of p99.
func (g *leakFigure) axes(simulated bool) {
	lo, hi := math.Inf(1), 0.0
	extent := func(d *leakRow) {
		if d.missing == "" {
			lo, hi = min(lo, d.p99.Lo), max(hi, d.p99.Hi)
		}
	}
	var leaks []float64
	for i := range g.rows {
		d := &g.rows[i]
		if d.group != answer.Baseline {
			extent(d)
		}
		leaks = append(leaks, d.pct, d.possible)
	}
	if hi == 0 {
		for i := range g.rows {
			extent(&g.rows[i])
		}
	}
	if hi == 0 { // an empty scale
		lo, hi = float64(time.Millisecond), float64(time.Second)
	}
	x := "p99 service time"
	if g.rows[0].AtRate().Params.Loop == results.OpenLoop {
		x = "p99 response time"
	}
	if simulated {
		x = "modelled " + x
	}
	g.p99.x = timeAxis(x, max(lo, 1)/1.25, hi*1.25)
	g.leak.x, g.scale = percentAxis("leak, in % of the limit", leaks)
	g.leak.x.ticks[0].label = "none found"
	g.leak.x.lo = -0.12 * (g.leak.x.hi - g.leak.x.lo)
}

// markFrontier marks the rows that no other beats in both leak and p99, and reports whether
// there are several.
func (g *leakFigure) markFrontier() bool {
	var order []*leakRow
	for i := range g.rows {
		d := &g.rows[i]
		if d.group != answer.Baseline && d.group != answer.Unusable && d.FalseRejects.Count == 0 && !d.PerProcess && d.p99.Shown() {
			order = append(order, d)
		}
	}
	slices.SortStableFunc(order, func(a, b *leakRow) int {
		if c := compareFloat(a.p99.Value, b.p99.Value); c != 0 {
			return c
		}
		return compareFloat(a.pct, b.pct)
	})
	least, n := math.Inf(1), 0
	for _, d := range order {
		if d.pct < least {
			least, d.frontier = d.pct, true
			n++
		}
	}
	return n > 0
}

func leakText() draw.TextStyle { return textStyle(labelSize, ink, false) }

// blockHeight is the height that a text of one or more lines takes, from the
// ascenders of the first to the descenders of the last.
func blockHeight(s draw.TextStyle, txt string) vg.Length {
	e := s.FontExtents()
	return e.Ascent + e.Descent + vg.Length(strings.Count(txt, "\n"))*e.Height
}

// layout places all below a heading of some height.
func (g *leakFigure) layout(head vg.Length) {
	bold, names, rows := textStyle(labelSize, ink, true), vg.Length(0), 2*rowsMargin
	heights := make([]vg.Length, len(g.rows))
	for i := range g.rows {
		names = max(names, bold.Width(widestLine(bold, g.rows[i].name)))
		heights[i] = max(rowHeight, blockHeight(bold, g.rows[i].name)+6)
		rows += heights[i]
	}
	g.note = fold(footnoteStyle(), drawable(g.note), g.width-2*margin)
	g.legendAt = margin + blockHeight(footnoteStyle(), g.note) + 18
	bottom := g.legendAt + legendLine + 44
	g.height = bottom + rows + head + 16
	left, right := margin+names+14, g.width-margin-8
	middle := left + 0.42*(right-left)
	g.leak.area = vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: middle - 14, Y: bottom + rows}}
	g.p99.area = vg.Rectangle{Min: vg.Point{X: middle + 14, Y: bottom}, Max: vg.Point{X: right, Y: bottom + rows}}
	y := bottom + rows - rowsMargin
	for i, h := range heights {
		g.rows[i].at = y - h/2
		y -= h
	}
}

func (g *leakFigure) draw(c draw.Canvas, simulated bool) {
	if simulated {
		watermark(c, vg.Rectangle{Min: g.leak.area.Min, Max: g.p99.area.Max})
	}
	for _, f := range []*frame{&g.leak, &g.p99} {
		f.x.ticks = apart(f.x, f.area)
		f.draw(c)
	}
	for i := range g.rows {
		g.drawRow(c, &g.rows[i])
	}
	g.legend(c)
	footnote(c, g.note, margin+blockHeight(footnoteStyle(), g.note))
}

// drawRow draws a strategy's name, its lines and its two marks.
func (g *leakFigure) drawRow(c draw.Canvas, d *leakRow) {
	style := groupStyles[d.group]
	name := aligned(textStyle(labelSize, ink, d.frontier), text.XRight, text.YCenter)
	c.FillText(name, vg.Point{X: g.leak.area.Min.X - 10, Y: d.at}, d.name)
	leak := func(pct float64) vg.Length { return g.leak.point(g.scale.at(pct), 0).X }
	line := draw.LineStyle{Color: pale(style.Color), Width: 1.6}
	c.StrokeLine2(line, leak(0), d.at, leak(d.pct), d.at)
	c.StrokeLine2(draw.LineStyle{Color: pale(line.Color), Width: 1.6}, leak(d.pct), d.at, leak(d.possible), d.at)
	drawMark(&c, style, vg.Point{X: leak(d.pct), Y: d.at}, false, d.FalseRejects.Count > 0)
	if d.missing != "" {
		text := aligned(textStyle(labelSize, faint, false), text.XLeft, text.YCenter)
		c.FillText(text, vg.Point{X: g.p99.area.Min.X + 8, Y: d.at}, d.missing)
		return
	}
	p99 := func(ns float64) vg.Length {
		a := g.p99.area
		return min(max(g.p99.point(math.Log10(max(ns, 1)), 0).X, a.Min.X+7), a.Max.X)
	}
	c.StrokeLine2(line, p99(d.p99.Lo), d.at, p99(d.p99.Hi), d.at)
	drawMark(&c, style, vg.Point{X: p99(d.p99.Value), Y: d.at}, d.hollow, false)
}

// groupStyles tell groups by colour and by shape.
var groupStyles = map[answer.Group]draw.GlyphStyle{
	answer.Enforces:  {Color: palette[0], Radius: dotRadius, Shape: draw.CircleGlyph{}},
	answer.Bounded:   {Color: palette[4], Radius: dotRadius, Shape: draw.BoxGlyph{}},
	answer.Undecided: {Color: palette[4], Radius: dotRadius, Shape: draw.RingGlyph{}},
	answer.Fails:     {Color: palette[1], Radius: dotRadius + 0.8, Shape: draw.PyramidGlyph{}},
	answer.Unusable:  {Color: color.NRGBA{0x7f, 0x7f, 0x7f, 0xff}, Radius: dotRadius, Shape: thickGlyph{}},
	answer.Baseline:  {Color: color.NRGBA{0xb8, 0xb8, 0xb8, 0xff}, Radius: dotRadius, Shape: thickGlyph{upright: true}},
}

// drawMark draws a group's glyph, hollow where its p99 may not be believed, in a ring
// where wrong rejections were found.
func drawMark(c *draw.Canvas, style draw.GlyphStyle, at vg.Point, hollow, ring bool) {
	if ring {
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: palette[1], Radius: dotRadius + 4, Shape: hollowGlyph{draw.CircleGlyph{}, 1.3}}, at)
	}
	if hollow {
		style.Shape = hollowGlyph{style.Shape, 1.7}
	}
	c.DrawGlyphNoClip(style, at)
}

// legend explains the marks in use.
func (g *leakFigure) legend(c draw.Canvas) {
	type entry struct {
		name         string
		style        draw.GlyphStyle
		hollow, ring bool
	}
	var entries []entry
	for _, group := range answer.Groups() {
		if slices.ContainsFunc(g.rows, func(d leakRow) bool { return d.group == group }) {
			entries = append(entries, entry{name: string(group), style: groupStyles[group]})
		}
	}
	if slices.ContainsFunc(g.rows, func(d leakRow) bool { return d.FalseRejects.Count > 0 }) {
		entries = append(entries, entry{"rejects wrongly", draw.GlyphStyle{Color: white, Radius: 1, Shape: draw.CircleGlyph{}}, false, true})
	}
	if slices.ContainsFunc(g.rows, func(d leakRow) bool { return d.hollow }) {
		entries = append(entries, entry{"p99 in doubt", draw.GlyphStyle{Color: faint, Radius: dotRadius, Shape: draw.CircleGlyph{}}, true, false})
	}
	s := aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter)
	x := g.leak.area.Min.X
	for _, e := range entries {
		drawMark(&c, e.style, vg.Point{X: x + 6, Y: g.legendAt}, e.hollow, e.ring)
		c.FillText(s, vg.Point{X: x + 18, Y: g.legendAt}, e.name)
		x += 18 + s.Width(e.name) + 20
	}
}

// describe says what the plot shows.
func (g *leakFigure) describe() string {
	txt := fmt.Sprintf("Leak in percent of the limit, and p99 latency, of %s.", format.Plural(int64(len(g.rows)), "strategy", "strategies"))
	for _, group := range answer.Groups() {
		n, first := int64(0), (*leakRow)(nil)
		for i := range g.rows {
			if d := &g.rows[i]; d.group == group {
				if n++; first == nil && d.missing == "" {
					first = d
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
		if d := &g.rows[i]; d.pct > 0 && d.group != answer.Baseline && (worst == nil || d.pct > worst.pct) {
			worst = d
		}
	}
	if worst != nil {
		txt += fmt.Sprintf(" The largest leak is %s of the limit, of %s.", format.Pct(worst.pct), worst.label)
	}
	return drawable(txt)
}
