package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// table is a drawing with a row for each strategy: its name, and marks in charts next to
// each other, whose vertical axes count points down from the first row.
type table struct {
	sheet
	charts []axes
	rows   []tableRow
	depth  vg.Length // of all rows
	key    []keyEntry
}

type tableRow struct {
	name string
	bold bool
	at   vg.Length
}

// keyEntry explains a mark.
type keyEntry struct {
	name  string
	style draw.GlyphStyle
}

const (
	dotRadius  = vg.Length(4.2)
	rowHeight  = vg.Length(18)
	rowNames   = vg.Length(230) // of a strategy's name, at most
	keyHeight  = vg.Length(30)
	chartSpace = vg.Length(28) // between charts
)

// row adds a row, and returns where it is.
func (t *table) row(name string, bold bool) (at float64) {
	name = fold(labelStyle, drawable(name), rowNames)
	most := max(rowHeight, height(labelStyle, name)+6)
	middle := t.depth + most/2
	t.depth += most
	t.rows = append(t.rows, tableRow{name, bold, middle})
	return -float64(middle)
}

// plot lays the table out.
func (t *table) plot() *Plot {
	return t.sheet.plot(keyHeight+t.depth+panelAxis, func(c draw.Canvas) {
		names := vg.Length(0)
		all := c
		for _, r := range t.rows {
			names = max(names, t.style(r).Width(r.name))
		}
		c.Min.X = c.Min.X + names + 14
		c.Max.Y = c.Max.Y - keyHeight
		if t.simulated {
			watermark(c)
		}
		part := c
		area := c
		for i := range t.charts {
			x := &t.charts[i]
			x.HideY()
			x.Y.Width = edgeStyle.Width
			x.Y.Min = -float64(t.depth)
			x.Y.Max = 0
			part.Min.X = c.Min.X + vg.Length(i)*(c.Max.X-c.Min.X+chartSpace)/vg.Length(len(t.charts))
			part.Max.X = part.Min.X + (c.Max.X-c.Min.X+chartSpace)/vg.Length(len(t.charts)) - chartSpace
			area = x.draw(part)
		}
		for _, r := range t.rows {
			c.FillText(t.style(r), vg.Point{X: c.Min.X - 10, Y: area.Y(1 - float64(r.at/t.depth))}, r.name)
		}
		wide := vg.Length(0)
		for _, e := range t.key {
			wide += 18 + labelStyle.Width(e.name) + 20
		}
		at := vg.Point{X: min(c.Min.X, all.Max.X-wide), Y: all.Max.Y - keyHeight/2}
		for _, e := range t.key {
			c.DrawGlyphNoClip(e.style, vg.Point{X: at.X + 6, Y: at.Y})
			c.FillText(labelStyle, vg.Point{X: at.X + 18, Y: at.Y}, e.name)
			at.X += 18 + labelStyle.Width(e.name) + 20
		}
	})
}

func (t *table) style(r tableRow) draw.TextStyle {
	s := leftStyle
	if r.bold {
		s.Font = panelStyle.Font
		s.Font.Size = labelSize
	}
	return s
}

// dot is a mark at a place.
func dot(x, y float64, style draw.GlyphStyle) plot.Plotter {
	return &plotter.Scatter{XYs: plotter.XYs{{X: x, Y: y}}, GlyphStyle: style}
}

// bar is a horizontal line.
func bar(from, to, y float64, style draw.LineStyle) plot.Plotter {
	return segment(plotter.XY{X: from, Y: y}, plotter.XY{X: to, Y: y}, style)
}

// hollow is the outline of a mark; a cross and a plus have thinner lines.
func hollow(s draw.GlyphStyle) draw.GlyphStyle {
	switch shape := s.Shape.(type) {
	case draw.CircleGlyph:
		s.Shape = lineGlyph{draw.RingGlyph{}, 1.7}
	case draw.BoxGlyph:
		s.Shape = lineGlyph{draw.SquareGlyph{}, 1.7}
	case draw.PyramidGlyph:
		s.Shape = lineGlyph{draw.TriangleGlyph{}, 1.7}
	case lineGlyph:
		s.Shape = lineGlyph{shape.GlyphDrawer, 0.8}
	}
	return s
}
