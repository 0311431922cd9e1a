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
	return t.sheet.plot(keyHeight+t.depth+panelAxis, func(canvas draw.Canvas) {
		names := vg.Length(0)
		all := canvas
		for _, tableRow := range t.rows {
			names = max(names, t.style(tableRow).Width(tableRow.name))
		}
		canvas.Min.X = canvas.Min.X + names + 14
		canvas.Max.Y = canvas.Max.Y - keyHeight
		if t.simulated {
			watermark(canvas)
		}
		part := canvas
		area := canvas
		for i := range t.charts {
			axes := &t.charts[i]
			axes.HideY()
			axes.Y.Width = edgeStyle.Width
			axes.Y.Min = -float64(t.depth)
			axes.Y.Max = 0
			part.Min.X = canvas.Min.X + vg.Length(i)*(canvas.Max.X-canvas.Min.X+chartSpace)/vg.Length(len(t.charts))
			part.Max.X = part.Min.X + (canvas.Max.X-canvas.Min.X+chartSpace)/vg.Length(len(t.charts)) - chartSpace
			area = axes.draw(part)
		}
		for _, tableRow := range t.rows {
			canvas.FillText(t.style(tableRow), vg.Point{X: canvas.Min.X - 10, Y: area.Y(1 - float64(tableRow.at/t.depth))},
				tableRow.name)
		}
		wide := vg.Length(0)
		for _, entry := range t.key {
			wide += 18 + labelStyle.Width(entry.name) + 20
		}
		at := vg.Point{X: min(canvas.Min.X, all.Max.X-wide), Y: all.Max.Y - keyHeight/2}
		for _, entry := range t.key {
			canvas.DrawGlyphNoClip(entry.style, vg.Point{X: at.X + 6, Y: at.Y})
			canvas.FillText(labelStyle, vg.Point{X: at.X + 18, Y: at.Y}, entry.name)
			at.X += 18 + labelStyle.Width(entry.name) + 20
		}
	})
}

func (t *table) style(r tableRow) draw.TextStyle {
	style := leftStyle
	if r.bold {
		style.Font = panelStyle.Font
		style.Font.Size = labelSize
	}
	return style
}

// dot is a mark at a place.
func dot(x, y float64, style draw.GlyphStyle) plot.Plotter {
	return &plotter.Scatter{XYs: plotter.XYs{{X: x, Y: y}}, GlyphStyle: style}
}

// bar is a horizontal line.
func bar(from, to, y float64, style draw.LineStyle) plot.Plotter {
	return segment(plotter.XY{X: from, Y: y}, plotter.XY{X: to, Y: y}, style)
}
