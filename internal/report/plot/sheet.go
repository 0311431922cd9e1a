package plot

import (
	"cmp"
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
	width                      vg.Length // 0 for that of most
}

// plot makes a drawing around a body of some height.
func (s *sheet) plot(body vg.Length, paint func(c draw.Canvas)) *Plot {
	captions := captionStyle
	if s.simulated {
		captions.Color = amber
	}
	width := cmp.Or(s.width, 900)
	room := width - 2*margin
	title := fold(titleStyle, drawable(s.title), room)
	caption := fold(captionStyle, drawable(s.caption), room)
	note := fold(captionStyle, drawable(s.note), room)
	below := margin + height(titleStyle, title) + 5 // the title
	head := below + height(captionStyle, caption) + 10
	foot := margin + height(captionStyle, note) + 6
	return &Plot{title: s.title, desc: s.desc, width: width, height: head + body + foot, paint: func(c draw.Canvas) {
		c.FillText(titleStyle, vg.Point{X: margin, Y: c.Max.Y - margin}, title)
		c.FillText(captions, vg.Point{X: margin, Y: c.Max.Y - below}, caption)
		c.FillText(captionStyle, vg.Point{X: margin, Y: foot - 6}, note)
		paint(draw.Crop(c, margin, -margin, foot, -head))
	}}
}

// watermark marks a drawing that does not come from a measurement.
func watermark(c draw.Canvas) {
	size := min(54, float64(c.Max.Y-c.Min.Y)/3) // which keeps it off the texts above and below
	s := aligned(textStyle(size, subtle, true), text.XCenter, text.YCenter)
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
		a.LineStyle = edgeStyle
		a.Tick.LineStyle = edgeStyle
		a.Tick.Length = 4.5
		a.Padding = 0
		a.Label.TextStyle.Font = textStyle(axisSize, ink, false).Font
		a.Label.TextStyle.Color = ink
		a.Label.Padding = 4
		a.Tick.Label.Font = labelStyle.Font
		a.Tick.Label.Color = ink
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
