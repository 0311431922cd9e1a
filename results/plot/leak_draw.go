package plot

import (
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/results/answer"
)

// groupStyles tell groups by colour and by shape.
var groupStyles = map[answer.Group]draw.GlyphStyle{
	answer.Enforces:  {Color: palette[0], Radius: dotRadius, Shape: draw.CircleGlyph{}},
	answer.Bounded:   {Color: palette[4], Radius: dotRadius, Shape: draw.BoxGlyph{}},
	answer.Undecided: {Color: palette[4], Radius: dotRadius, Shape: draw.RingGlyph{}},
	answer.Fails:     {Color: palette[1], Radius: dotRadius + 0.8, Shape: draw.PyramidGlyph{}},
	answer.Unusable:  {Color: color.NRGBA{0x7f, 0x7f, 0x7f, 0xff}, Radius: dotRadius, Shape: thickGlyph{}},
	answer.Baseline:  {Color: color.NRGBA{0xb8, 0xb8, 0xb8, 0xff}, Radius: dotRadius, Shape: thickGlyph{upright: true}},
}

func leakText() draw.TextStyle { return textStyle(labelSize, ink, false) }

const axisGap = vg.Length(5) // between an axis and a label

const leakTextWidth = vg.Length(190) // of a label in the scatter, at most

// blockHeight is the height that a text of one or more lines takes, from the
// ascenders of the first to the descenders of the last.
func blockHeight(s draw.TextStyle, txt string) vg.Length {
	e := s.FontExtents()
	return e.Ascent + e.Descent + vg.Length(strings.Count(txt, "\n"))*e.Height
}

// layout places all, with a scatter of that height, and reports whether every label
// found room.
func (g *leakFigure) layout(scatter, head vg.Length, note string) bool {
	ns := footnoteStyle()
	g.note = strings.Split(fold(ns, drawable(note), g.width-2*margin), "\n")
	rows := len(g.dots) - len(g.scattered)
	left, right := vg.Length(84), g.width-margin-6
	bottom := margin + blockHeight(ns, strings.Join(g.note, "\n")) + 10
	g.legendAt = bottom + 8
	y := g.legendAt + 14 + 44
	g.rows.area = vg.Rectangle{Min: vg.Point{X: left, Y: y}, Max: vg.Point{X: right, Y: y}}
	if rows > 0 {
		y += vg.Length(rows)*rowHeight + rowsAbove + 4
		g.rows.area.Max.Y = y
	}
	g.leaks.area = vg.Rectangle{Min: vg.Point{X: left, Y: y}, Max: vg.Point{X: right, Y: y}}
	if len(g.scattered) > 0 {
		y += scatter
		g.leaks.area.Max.Y = y
	}
	g.height = y + head + 16
	row := g.rows.area.Max.Y - rowsAbove
	for i := range g.dots {
		d := &g.dots[i]
		x := func(ns float64) vg.Length {
			return min(max(g.rows.x.place(math.Log10(max(ns, 1)), left, right), left+7), right)
		}
		d.at = vg.Point{X: x(d.p99.Value), Y: row}
		d.left, d.right = min(d.at.X, x(d.p99.Lo)), max(d.at.X, x(d.p99.Hi))
		if d.clean() {
			row -= rowHeight
		} else {
			d.at.Y = g.leaks.y.place(g.scale.at(d.pct), g.leaks.area.Min.Y, g.leaks.area.Max.Y)
			d.up = g.leaks.y.place(g.scale.at(d.possible), g.leaks.area.Min.Y, g.leaks.area.Max.Y)
		}
	}
	g.layFrontier()
	return g.layLabels()
}

// layFrontier is a staircase from the fastest to the one that leaks least.
func (g *leakFigure) layFrontier() {
	g.frontier = nil
	dots := g.frontierDots()
	if len(dots) < 2 || len(g.scattered) == 0 {
		return
	}
	for k, i := range dots {
		at := g.dots[i].at
		if k == 0 {
			g.frontier = append(g.frontier, vg.Point{X: at.X, Y: g.leaks.area.Max.Y})
		} else {
			g.frontier = append(g.frontier, vg.Point{X: at.X, Y: g.frontier[len(g.frontier)-1].Y})
		}
		g.frontier = append(g.frontier, at)
	}
	if last := &g.dots[dots[len(dots)-1]]; !last.clean() {
		g.frontier = append(g.frontier, vg.Point{X: g.leaks.area.Max.X, Y: last.at.Y})
	}
}

// layLabels finds places for the labels of dots that leak. Those of rows stand beside
// their dot.
func (g *leakFigure) layLabels() bool {
	s := leakText()
	g.places = make([]vg.Rectangle, len(g.dots))
	var specs []label
	var lines []segment
	for i := range g.frontier[:max(len(g.frontier)-1, 0)] {
		lines = append(lines, segment{g.frontier[i], g.frontier[i+1]})
	}
	for i := range g.dots {
		d := &g.dots[i]
		if d.clean() {
			w, h := s.Width(d.text), blockHeight(s, d.text)
			x := max(d.right, d.at.X+dotRadius+3) + 6
			if x+w > g.rows.area.Max.X {
				x = min(d.left, d.at.X-dotRadius-3) - 6 - w
			}
			if x < g.rows.area.Min.X+axisGap { // a whisker as wide as the frame: above its end
				x = max(g.rows.area.Min.X+axisGap, g.rows.area.Max.X-w)
			}
			g.places[i] = vg.Rectangle{Min: vg.Point{X: x, Y: d.at.Y - h/2}, Max: vg.Point{X: x + w, Y: d.at.Y + h/2}}
			continue
		}
		d.text = fold(s, strings.ReplaceAll(d.text, "\n", " "), leakTextWidth)
		specs = append(specs, label{d.at, s.Width(d.text), blockHeight(s, d.text)})
		lines = append(lines, segment{vg.Point{X: d.left, Y: d.at.Y}, vg.Point{X: d.right, Y: d.at.Y}}, segment{d.at, vg.Point{X: d.at.X, Y: d.up}})
	}
	if len(specs) == 0 {
		return true
	}
	room := g.leaks.area // and off the axes
	room.Min = vg.Point{X: room.Min.X + axisGap, Y: room.Min.Y + axisGap}
	places, ok := placeLabels(specs, room, dotRadius+2, lines)
	if !ok {
		return false
	}
	for k, i := range g.scattered {
		g.places[i] = places[k]
	}
	return true
}

func (g *leakFigure) draw(c draw.Canvas, simulated bool) {
	rows, leaks := g.rows.area, g.leaks.area
	if rows.Max.Y > rows.Min.Y {
		c.FillPolygon(subtle, []vg.Point{rows.Min, {X: rows.Max.X, Y: rows.Min.Y}, rows.Max, {X: rows.Min.X, Y: rows.Max.Y}})
	}
	if simulated {
		watermark(c, vg.Rectangle{Min: rows.Min, Max: leaks.Max})
	}
	g.rows.x.ticks = apart(g.rows.x, rows)
	all := frame{area: vg.Rectangle{Min: rows.Min, Max: leaks.Max}, x: g.rows.x, y: axis{lo: 0, hi: 1}}
	all.draw(c)
	if len(g.scattered) > 0 {
		g.leaks.drawY(c)
	}
	if rows.Max.Y > rows.Min.Y {
		s := aligned(textStyle(tickSize, ink, false), text.XRight, text.YCenter)
		c.FillText(s, vg.Point{X: rows.Min.X - 8, Y: (rows.Min.Y + rows.Max.Y) / 2}, "no leak\nfound")
	}
	if len(g.frontier) > 0 {
		c.StrokeLines(frontierStyle, g.frontier)
	}
	// Those of baselines lie below the others.
	for _, baseline := range []bool{true, false} {
		for i := range g.dots {
			if (g.dots[i].group == answer.Baseline) == baseline {
				g.drawWhiskers(c, i)
			}
		}
	}
	for i := range g.dots {
		g.drawDot(c, i)
	}
	g.legend(c)
	for i, l := range g.note {
		s := footnoteStyle()
		c.FillText(s, vg.Point{X: margin, Y: g.legendAt - 14 - vg.Length(i)*s.FontExtents().Height}, l)
	}
}

var frontierStyle = draw.LineStyle{Color: color.NRGBA{0x7f, 0xb8, 0xd8, 0xff}, Width: 1.3, Dashes: []vg.Length{6, 3}}

func (g *leakFigure) drawWhiskers(c draw.Canvas, i int) {
	d := &g.dots[i]
	whisker := draw.LineStyle{Color: faded(groupStyles[d.group].Color), Width: 1.4}
	c.StrokeLine2(whisker, d.left, d.at.Y, d.right, d.at.Y)
	if d.clean() {
		return
	}
	c.StrokeLine2(whisker, d.at.X, d.at.Y, d.at.X, d.up)
	if from, to, ok := leader(label{dot: d.at}, g.places[i]); ok {
		c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.6}, from.X, from.Y, to.X, to.Y)
	}
}

func (g *leakFigure) drawDot(c draw.Canvas, i int) {
	d := &g.dots[i]
	drawMark(&c, groupStyles[d.group], d.at, d.hollow, d.FalseRejects.Count > 0)
	s := leakText()
	// FillText anchors the baseline of the last line.
	c.FillText(s, vg.Point{X: g.places[i].Min.X, Y: g.places[i].Min.Y + s.FontExtents().Descent}, d.text)
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

// faded is a colour for what goes with a dot but must not outshine it.
func faded(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	mix := func(v uint32) uint8 { return uint8((v>>8 + 2*255) / 3) }
	return color.NRGBA{mix(r), mix(g), mix(b), 255}
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
		if slices.ContainsFunc(g.dots, func(d leakDot) bool { return d.group == group }) {
			entries = append(entries, entry{name: string(group), style: groupStyles[group]})
		}
	}
	if slices.ContainsFunc(g.dots, func(d leakDot) bool { return d.FalseRejects.Count > 0 }) {
		entries = append(entries, entry{"rejects wrongly", draw.GlyphStyle{Color: white, Radius: 1, Shape: draw.CircleGlyph{}}, false, true})
	}
	if slices.ContainsFunc(g.dots, func(d leakDot) bool { return d.hollow }) {
		entries = append(entries, entry{"p99 in doubt", draw.GlyphStyle{Color: faint, Radius: dotRadius, Shape: draw.CircleGlyph{}}, true, false})
	}
	s := aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter)
	x := g.rows.area.Min.X
	for _, e := range entries {
		drawMark(&c, e.style, vg.Point{X: x + 6, Y: g.legendAt}, e.hollow, e.ring)
		c.FillText(s, vg.Point{X: x + 18, Y: g.legendAt}, e.name)
		x += 18 + s.Width(e.name) + 20
	}
}
