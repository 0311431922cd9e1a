package plot

import (
	"math"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// figure is a drawing of panels with lines, one below the other. Areas of all panels
// have the same left and right edge.
type figure struct {
	title, caption, note, desc string
	simulated                  bool
	panels                     []panel
	width                      vg.Length
	// least is the least height of a panel's area.
	least vg.Length
	// keyed has lines named in rows above their area, which leaves its whole width to
	// lines, and not where they end.
	keyed bool
}

// panel is one pair of axes with lines. The lines' names stand to its right, at the
// height at which the lines end.
type panel struct {
	title  string
	x, y   axis
	lines  []line
	shades []shade
	rules  []upright
	// zero has the line of 0 drawn darker, where values have a sign.
	zero bool
}

// shade is a stretch of the horizontal axis with another ground.
type shade struct{ from, to float64 }

// upright is a vertical rule.
type upright struct {
	at   float64
	name string // at its top; may be empty
	// ends has the rule drawn as what ends a window: darker than the grid, dashed.
	style draw.LineStyle
}

const (
	swatchWidth = vg.Length(30)  // of a line's sample beside its name
	nameGap     = vg.Length(14)  // from an area to the sample
	nameWidth   = vg.Length(170) // of a name, at most
	panelTitle  = vg.Length(22)  // room above an area for its title
	panelGap    = vg.Length(16)  // between a panel's texts and the next one's title
)

// plot lays the figure out.
func (g *figure) plot() *Plot {
	p := &Plot{title: g.title, desc: g.desc, width: g.width}
	caption := fold(captionStyle(g.simulated), drawable(g.caption), g.width-2*margin)
	head := margin + titleSize + 12 + captionStyle(g.simulated).Height(caption) + 6
	note := fold(footnoteStyle(), drawable(g.note), g.width-2*margin)
	foot := margin
	if note != "" {
		foot += blockHeight(footnoteStyle(), note) + 6
	}
	left, right := g.sides()
	heights := make([]vg.Length, len(g.panels))
	p.height = head + foot
	for i := range g.panels {
		heights[i] = g.least
		if !g.keyed {
			heights[i] = max(g.least, namesHeight(g.names(i)))
		}
		p.height += g.above(i) + heights[i] + g.below(i)
	}
	p.paint = func(c draw.Canvas) {
		heading(c, g.title, caption, g.simulated)
		y := c.Max.Y - head
		for i := range g.panels {
			y -= g.above(i)
			g.drawPanel(c, i, vg.Rectangle{Min: vg.Point{X: left, Y: y - heights[i]}, Max: vg.Point{X: right, Y: y}})
			y -= heights[i] + g.below(i)
		}
		if note != "" {
			footnote(c, note, foot-6)
		}
	}
	return p
}

// above is the room for what stands over an area.
func (g *figure) above(i int) vg.Length {
	room := vg.Length(8)
	if g.panels[i].title != "" {
		room = panelTitle
	}
	if g.keyed {
		room += vg.Length(len(g.keyRows(i))) * keyRow
	}
	for _, r := range g.panels[i].rules {
		if r.name != "" {
			return room + 13
		}
	}
	return room
}

// below is the room for the ticks and the title of the horizontal axis.
func (g *figure) below(i int) vg.Length {
	room := vg.Length(20)
	if g.panels[i].x.title != "" {
		room += 24
	}
	if i < len(g.panels)-1 {
		room += panelGap
	}
	return room
}

// sides returns where areas begin and end, beside what has to stand left and right of
// them.
func (g *figure) sides() (left, right vg.Length) {
	ts := textStyle(tickSize, ink, false)
	var ticks, names, overhang vg.Length
	titled := false
	for i := range g.panels {
		p := &g.panels[i]
		titled = titled || p.y.title != ""
		for _, t := range p.y.ticks {
			ticks = max(ticks, ts.Width(t.label))
		}
		for _, t := range p.x.ticks {
			overhang = max(overhang, ts.Width(t.label)/2)
		}
		for _, n := range g.names(i) {
			if n != "" && !g.keyed {
				names = max(names, nameGap+swatchWidth+nameStyle().Width(n)+4)
			}
		}
	}
	left = margin + ticks + 12
	if titled {
		left += 18
	}
	return left, g.width - margin - max(names, overhang)
}

func (g *figure) drawPanel(c draw.Canvas, i int, area vg.Rectangle) {
	p := &g.panels[i]
	f := frame{area: area, x: p.x, y: p.y}
	f.x.ticks = apart(f.x, area)
	for _, s := range p.shades {
		from, to := f.point(max(s.from, f.x.lo), f.y.lo), f.point(min(s.to, f.x.hi), f.y.hi)
		c.FillPolygon(away, []vg.Point{from, {X: to.X, Y: from.Y}, to, {X: from.X, Y: to.Y}})
	}
	if g.simulated && i == 0 && len(g.panels) == 1 {
		watermark(c, area)
	}
	f.draw(c)
	top := area.Max.Y + 5
	for _, r := range p.rules {
		if r.at < f.x.lo || r.at > f.x.hi {
			continue
		}
		x := f.x.place(r.at, area.Min.X, area.Max.X)
		c.StrokeLine2(r.style, x, area.Min.Y, x, area.Max.Y)
		if r.name != "" {
			top = area.Max.Y + 18
			s := aligned(textStyle(captionSize, faint, false), text.XCenter, text.YBottom)
			half := s.Width(r.name) / 2
			c.FillText(s, vg.Point{X: min(max(x, area.Min.X+half), area.Max.X-half), Y: area.Max.Y + 3}, r.name)
		}
	}
	if g.keyed {
		g.drawKey(c, i, area.Min.X, top)
		top += vg.Length(len(g.keyRows(i))) * keyRow
	}
	if p.title != "" {
		c.FillText(aligned(textStyle(axisSize, ink, true), text.XLeft, text.YBottom), vg.Point{X: area.Min.X, Y: top}, drawable(p.title))
	}
	if p.zero {
		y := f.y.place(0, area.Min.Y, area.Max.Y)
		c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.9}, area.Min.X, y, area.Max.X, y)
	}
	ends := make([]vg.Length, len(p.lines))
	for k := range p.lines {
		ends[k] = p.lines[k].draw(c, f)
	}
	// Markers come last, on a white ground: what tells lines apart must not drown in the
	// lines of others.
	for k := range p.lines {
		p.lines[k].drawMarks(c, f)
	}
	if !g.keyed {
		g.drawNames(c, i, f, ends)
	}
}

// apart takes the names of ticks away that would touch the one before.
func apart(a axis, area vg.Rectangle) []tick {
	s := textStyle(tickSize, ink, false)
	free := vg.Length(math.Inf(-1))
	out := make([]tick, len(a.ticks))
	for i, t := range a.ticks {
		if t.label != "" {
			x, half := a.place(t.at, area.Min.X, area.Max.X), s.Width(widestLine(s, t.label))/2
			if x-half < free {
				t.label = ""
			} else {
				free = x + half + 6
			}
		}
		out[i] = t
	}
	return out
}

func widestLine(s draw.TextStyle, txt string) (widest string) {
	for l := range strings.SplitSeq(txt, "\n") {
		if s.Width(l) > s.Width(widest) {
			widest = l
		}
	}
	return widest
}
