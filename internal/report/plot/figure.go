package plot

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// figure is a drawing of panels with lines, one below the other. Areas of all panels
// have the same left and right edge.
type figure struct {
	sheet
	panels []*panel
	// least is the least height of a panel's area; 0 for that of one panel or of several.
	least vg.Length
}

// panel is a pair of axes with lines. The lines' names stand to its right, at the height at which
// the lines end.
type panel struct {
	axes
	title string
	lines []line
	names []string // folded
}

const (
	swatchWidth = vg.Length(30)  // of a line's sample next to its name
	nameGap     = vg.Length(14)  // from an area to the sample
	nameWidth   = vg.Length(170) // of a name, at most
	panelTitle  = vg.Length(30)  // room above an area for its title
	panelAxis   = vg.Length(40)  // room below an area
)

func newPanel(title string) *panel { return &panel{axes: newAxes(), title: title} }

// shade gives a stretch of the horizontal axis another ground.
func (p *panel) shade(from, to float64) {
	from = max(from, p.X.Min)
	to = min(to, p.X.Max)
	p.add(&plotter.Polygon{Color: away,
		XYs: []plotter.XYs{{{X: from, Y: p.Y.Min}, {X: to, Y: p.Y.Min}, {X: to, Y: p.Y.Max},
			{X: from, Y: p.Y.Max}}}})
}

// zero draws the line of 0, and upright a vertical one.
func (p *panel) zero() {
	p.add(segment(plotter.XY{X: p.X.Min}, plotter.XY{X: p.X.Max}, edgeStyle))
}

func (p *panel) upright(value float64, style draw.LineStyle) {
	p.add(segment(plotter.XY{X: value, Y: p.Y.Min}, plotter.XY{X: value, Y: p.Y.Max}, style))
}

// plot lays the figure out.
func (g *figure) plot() *Plot {
	names := vg.Length(0)
	body := vg.Length(0)
	heights := make([]vg.Length, len(g.panels))
	least := cmp.Or(g.least, 360/min(2.4, vg.Length(len(g.panels))))
	for i, panel := range g.panels {
		most := vg.Length(0)
		for k := range panel.lines {
			name := fold(labelStyle, drawable(panel.lines[k].name), nameWidth)
			panel.names = append(panel.names, name)
			if name != "" {
				names = max(names, nameGap+swatchWidth+labelStyle.Width(name))
			}
			most += nameHeight(name)
		}
		heights[i] = max(least, most) + panelTitle + panelAxis
		if i < len(g.panels)-1 {
			panel.X.Label.Text = "" // the last one's is for all
		}
		body += heights[i]
	}
	return g.sheet.plot(body, func(canvas draw.Canvas) {
		canvas.Max.X -= names
		var left, right vg.Length // what axes need
		for _, panel := range g.panels {
			area := panel.DataCanvas(canvas)
			left = max(left, area.Min.X-canvas.Min.X)
			right = max(right, canvas.Max.X-area.Max.X)
		}
		for i, panel := range g.panels {
			part := canvas
			area := panel.DataCanvas(canvas)
			part.Min.Y = canvas.Max.Y - heights[i]
			canvas.Max.Y = part.Min.Y
			panel.draw(draw.Crop(part, left-(area.Min.X-canvas.Min.X), canvas.Max.X-area.Max.X-right, 0, -panelTitle),
				g.simulated && len(g.panels) == 1)
		}
	})
}

func (p *panel) draw(canvas draw.Canvas, simulated bool) {
	area := p.DataCanvas(canvas)
	if simulated {
		watermark(area)
	}
	canvas.FillText(panelStyle, vg.Point{X: area.Min.X, Y: area.Max.Y + 6}, drawable(p.title))
	var marks []plot.Plotter
	for i := range p.lines {
		p.add(p.lines[i].strokes()...)
		marks = append(marks, p.lines[i].markers())
	}
	p.add(marks...)
	p.drawNames(p.axes.draw(canvas))
}

func nameHeight(name string) vg.Length {
	if name == "" {
		return 0
	}
	return height(labelStyle, name) + 4
}

// drawNames sets the lines' names to the right of an area, each as near as there is
// room to where its line ends.
func (p *panel) drawNames(canvas draw.Canvas) {
	toX, toY := p.Transforms(&canvas)
	ends := make([]vg.Length, len(p.lines))
	heights := make([]vg.Length, len(p.lines))
	for k := range p.lines {
		ends[k], heights[k] = min(toY(p.lines[k].last().Y), canvas.Max.Y), nameHeight(p.names[k])
	}
	for k, at := range spread(ends, heights, canvas.Min.Y, canvas.Max.Y) {
		if p.names[k] == "" {
			continue
		}
		line := &p.lines[k]
		length := canvas.Max.X + nameGap
		if end := toX(line.last().X); canvas.Max.X-end < 14 {
			canvas.StrokeLine2(draw.LineStyle{Color: pale(line.style.line.Color), Width: 0.7}, end+5, ends[k], length-1, at)
		}
		canvas.StrokeLine2(line.style.line, length, at, length+swatchWidth-6, at)
		if len(line.marks) > 0 {
			canvas.DrawGlyphNoClip(line.style.glyph, vg.Point{X: length + (swatchWidth-6)/2, Y: at})
		}
		canvas.FillText(labelStyle, vg.Point{X: length + swatchWidth, Y: at}, p.names[k])
	}
}

// spread returns the middles of names that want to be at given heights, with room for
// each, between lo and hi. The first of a list is the topmost if several end at one
// height.
func spread(wanted, heights []vg.Length, lo, hi vg.Length) []vg.Length {
	order := make([]int, len(wanted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wanted[b], wanted[a]) })
	out := make([]vg.Length, len(wanted))
	for _, i := range order { // down from the top
		out[i] = min(wanted[i], hi-heights[i]/2)
		hi = out[i] - heights[i]/2
	}
	for _, i := range slices.Backward(order) { // and up again from the bottom
		out[i] = max(out[i], lo+heights[i]/2)
		lo = out[i] + heights[i]/2
	}
	return out
}
