package plot

import (
	"cmp"
	"math"
	"slices"
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

// line is one curve, in the coordinates of the axes. A value that is not a number
// interrupts it.
type line struct {
	name  string // none: it is not named
	style seriesStyle
	x, y  []float64
	// whiskers from lo to hi at each point; nil for none
	lo, hi []float64
	// marks are the points with a marker; nil for none
	marks []int
	// faint is the point from which the line is pale; len(x) for none
	faint int
	// pale are points whose marker is pale
	pale []bool
	step bool // values hold until the next point
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

// placed is a panel's place in a figure.
type placed struct {
	frame  frame
	names  []string    // folded
	middle []vg.Length // of each name
}

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

const keyRow = vg.Length(15)

// keyRows puts the named lines of a panel into rows.
func (g *figure) keyRows(i int) (rows [][]int) {
	free := vg.Length(0)
	for k, name := range g.names(i) {
		if name == "" {
			continue
		}
		w := swatchWidth + nameStyle().Width(name) + 16
		if w > free {
			rows, free = append(rows, nil), g.width-4*margin-60
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], k)
		free -= w
	}
	return rows
}

// drawKey draws these rows up from a height.
func (g *figure) drawKey(c draw.Canvas, i int, left, y vg.Length) {
	names := g.names(i)
	rows := g.keyRows(i)
	for r := range rows {
		at, x := y+vg.Length(len(rows)-1-r)*keyRow+6, left
		for _, k := range rows[r] {
			c.StrokeLine2(g.panels[i].lines[k].style.line, x, at, x+swatchWidth-6, at)
			c.FillText(nameStyle(), vg.Point{X: x + swatchWidth, Y: at}, names[k])
			x += swatchWidth + nameStyle().Width(names[k]) + 16
		}
	}
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

func nameStyle() draw.TextStyle {
	return aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter)
}

// names are those of a panel's lines, folded.
func (g *figure) names(i int) []string {
	out := make([]string, len(g.panels[i].lines))
	for k, l := range g.panels[i].lines {
		if l.name != "" {
			if out[k] = drawable(l.name); !g.keyed {
				out[k] = fold(nameStyle(), out[k], nameWidth)
			}
		}
	}
	return out
}

const nameSpace = vg.Length(4) // between names

func nameHeight(name string) vg.Length {
	if name == "" {
		return 0
	}
	return blockHeight(nameStyle(), name) + nameSpace
}

func namesHeight(names []string) (sum vg.Length) {
	for _, n := range names {
		sum += nameHeight(n)
	}
	return sum
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

// drawNames sets the lines' names to the right of an area, each as near as there is
// room to where its line ends.
func (g *figure) drawNames(c draw.Canvas, i int, f frame, ends []vg.Length) {
	p, names := &g.panels[i], g.names(i)
	heights := make([]vg.Length, len(names))
	for k, n := range names {
		heights[k] = nameHeight(n)
	}
	thin := draw.LineStyle{Width: 0.7}
	for k, at := range spread(ends, heights, f.area.Min.Y, f.area.Max.Y) {
		if names[k] == "" {
			continue
		}
		l := &p.lines[k]
		x := f.area.Max.X + nameGap
		if last := l.last(); last >= 0 {
			if end := f.x.place(l.x[last], f.area.Min.X, f.area.Max.X); f.area.Max.X-end < 14 {
				thin.Color = pale(l.style.line.Color)
				c.StrokeLine2(thin, end+5, ends[k], x-1, at)
			}
		}
		c.StrokeLine2(l.style.line, x, at, x+swatchWidth-6, at)
		if len(l.marks) > 0 {
			l.style.mark(&c, vg.Point{X: x + (swatchWidth-6)/2, Y: at})
		}
		c.FillText(nameStyle(), vg.Point{X: x + swatchWidth, Y: at}, names[k])
	}
}

// cut ends the line where it leaves the frame at the top.
func (l *line) cut(top float64) {
	for i, y := range l.y {
		if y <= top {
			continue
		}
		if i > 0 {
			l.x[i] = l.x[i-1] + (l.x[i]-l.x[i-1])*(top-l.y[i-1])/(y-l.y[i-1])
		}
		l.x, l.y = l.x[:i+1], append(l.y[:i:i], top)
		l.marks = slices.DeleteFunc(slices.Clone(l.marks), func(k int) bool { return k >= i })
		l.faint = min(l.faint, i+1)
		return
	}
}

// last is the last point that is a number, or -1.
func (l *line) last() int {
	for i := len(l.y) - 1; i >= 0; i-- {
		if !math.IsNaN(l.y[i]) {
			return i
		}
	}
	return -1
}

// draw draws a line with its whiskers, and returns the height at which it ends.
func (l *line) draw(c draw.Canvas, f frame) (end vg.Length) {
	whisker := draw.LineStyle{Color: pale(l.style.line.Color), Width: 1.4}
	for i := range l.lo {
		if math.IsNaN(l.y[i]) || !(l.hi[i] > l.lo[i]) {
			continue
		}
		from, to := f.point(l.x[i], max(l.lo[i], f.y.lo)), f.point(l.x[i], min(l.hi[i], f.y.hi))
		c.StrokeLine2(whisker, from.X, from.Y, to.X, to.Y)
		c.StrokeLine2(whisker, from.X-3, from.Y, from.X+3, from.Y)
		c.StrokeLine2(whisker, to.X-3, to.Y, to.X+3, to.Y)
	}
	end = f.area.Min.Y
	var run []vg.Point
	style := l.style.line
	flush := func() {
		if len(run) > 1 {
			c.StrokeLines(style, run)
		}
		run = nil
	}
	for i := range l.x {
		if math.IsNaN(l.y[i]) {
			flush()
			continue
		}
		p := f.point(l.x[i], l.y[i])
		if l.step && len(run) > 0 {
			run = append(run, vg.Point{X: p.X, Y: run[len(run)-1].Y})
		}
		run, end = append(run, p), p.Y
		if i+1 == l.faint {
			flush()
			style.Color, run = pale(style.Color), []vg.Point{p}
		}
		if l.faint == 0 && i == 0 {
			style.Color = pale(style.Color)
		}
	}
	flush()
	return end
}

func (l *line) drawMarks(c draw.Canvas, f frame) {
	for _, i := range l.marks {
		if math.IsNaN(l.y[i]) {
			continue
		}
		style := l.style
		if i >= l.faint || l.pale != nil && l.pale[i] {
			style.glyph.Color = pale(style.glyph.Color)
		}
		style.mark(&c, f.point(l.x[i], l.y[i]))
	}
}

// spread returns the middles of names that want to be at given heights, with room for
// each: those that would overlap are moved as little as possible, in the order in which
// their lines end, and all stay between lo and hi.
func spread(wanted, heights []vg.Length, lo, hi vg.Length) []vg.Length {
	order := make([]int, 0, len(wanted))
	for i := range wanted {
		if heights[i] > 0 {
			order = append(order, i)
		}
	}
	// The first of a list is the topmost where several end at one height.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wanted[b], wanted[a]) })
	type block struct {
		members     []int
		top, height vg.Length
	}
	var blocks []block
	for _, i := range order {
		b := block{[]int{i}, wanted[i] + heights[i]/2, heights[i]}
		b.top = min(max(b.top, lo+b.height), hi)
		for len(blocks) > 0 && blocks[len(blocks)-1].top-blocks[len(blocks)-1].height < b.top {
			up := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			n, m := vg.Length(len(up.members)), vg.Length(len(b.members))
			// Where each member would have the block's top, on average.
			top := (up.top*n + (b.top+up.height)*m) / (n + m)
			b = block{append(up.members, b.members...), top, up.height + b.height}
			b.top = min(max(b.top, lo+b.height), hi)
		}
		blocks = append(blocks, b)
	}
	out := make([]vg.Length, len(wanted))
	for _, b := range blocks {
		y := b.top
		for _, i := range b.members {
			out[i] = y - heights[i]/2
			y -= heights[i]
		}
	}
	return out
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
