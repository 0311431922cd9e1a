package plot

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// sheet is what drawings have in common: a title and a caption above, and a note below.
type sheet struct {
	title, caption, note, desc string
	simulated                  bool
}

const sheetWidth = vg.Length(900)

// plot makes a drawing around a body of some height.
func (s *sheet) plot(body vg.Length, paint func(c draw.Canvas)) *Plot {
	captions := captionStyle
	if s.simulated {
		captions.Color = amber
	}
	caption := fold(captionStyle, drawable(s.caption), sheetWidth-2*margin)
	note := fold(captionStyle, drawable(s.note), sheetWidth-2*margin)
	head := margin + titleSize + 16 + height(captionStyle, caption)
	foot := margin + height(captionStyle, note) + 6
	return &Plot{title: s.title, desc: s.desc, width: sheetWidth, height: head + body + foot, paint: func(c draw.Canvas) {
		top := aligned(textStyle(titleSize, ink, true), text.XLeft, text.YTop)
		c.FillText(top, vg.Point{X: margin, Y: c.Max.Y - margin}, s.title)
		c.FillText(captions, vg.Point{X: margin, Y: c.Max.Y - margin - titleSize - 8}, caption)
		c.FillText(captionStyle, vg.Point{X: margin, Y: foot - 6}, note)
		paint(draw.Crop(c, margin, -margin, foot, -head))
	}}
}

// watermark marks a drawing that does not come from a measurement.
func watermark(c draw.Canvas) {
	s := aligned(textStyle(54, subtle, true), text.XCenter, text.YCenter)
	s.Rotation = math.Pi / 9
	c.FillText(s, c.Center(), "SIMULATED")
}

// axes are a pair of axes with what lies between them, in the order in which it is drawn.
type axes struct {
	*plot.Plot
	data []plot.Plotter
}

func newAxes() axes {
	c := axes{Plot: plot.New()}
	c.BackgroundColor = nil
	for _, a := range []*plot.Axis{&c.X, &c.Y} {
		a.LineStyle, a.Tick.LineStyle = edgeStyle, edgeStyle
		a.Tick.Length, a.Padding = 4.5, 0
		a.Label.TextStyle.Font, a.Label.TextStyle.Color, a.Label.Padding = textStyle(axisSize, ink, false).Font, ink, 4
		a.Tick.Label.Font, a.Tick.Label.Color = labelStyle.Font, ink
	}
	return c
}

func (x *axes) add(data ...plot.Plotter) { x.data = append(x.data, data...) }

// draw draws the axes on top, and returns where data lies.
func (x *axes) draw(c draw.Canvas) draw.Canvas {
	area := x.DataCanvas(c)
	x.X.Tick.Marker = apart(&x.X, area)
	for _, d := range append([]plot.Plotter{&plotter.Grid{Vertical: gridStyle, Horizontal: gridStyle}}, x.data...) {
		d.Plot(area, x.Plot)
	}
	x.Draw(c)
	return area
}
