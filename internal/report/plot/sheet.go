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
func (s *sheet) plot(body vg.Length, paint func(canvas draw.Canvas)) *Plot {
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
	drawn := &Plot{title: s.title, desc: s.desc, width: width, height: head + body + foot, foot: foot}
	drawn.paint = func(canvas draw.Canvas) {
		canvas.FillText(titleStyle, vg.Point{X: margin, Y: canvas.Max.Y - margin}, title)
		canvas.FillText(captions, vg.Point{X: margin, Y: canvas.Max.Y - below}, caption)
		canvas.FillText(captionStyle, vg.Point{X: margin, Y: foot - 6}, note)
		paint(draw.Crop(canvas, margin, -margin, foot, -head))
	}
	return drawn
}

// watermark marks a drawing that does not come from a measurement.
func watermark(canvas draw.Canvas) {
	size := min(54, float64(canvas.Max.Y-canvas.Min.Y)/3) // which keeps it off the texts above and below
	style := aligned(textStyle(size, subtle, true), text.XCenter, text.YCenter)
	style.Rotation = math.Pi / 9
	canvas.FillText(style, canvas.Center(), "SIMULATED")
}

// axes are a pair of axes with what lies between them, in the order in which it is drawn.
type axes struct {
	*plot.Plot
	data []plot.Plotter
}

func newAxes() axes {
	c := axes{Plot: plot.New()}
	c.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&c.X, &c.Y} {
		axis.LineStyle = edgeStyle
		axis.Tick.LineStyle = edgeStyle
		axis.Tick.Length = 4.5
		axis.Padding = 0
		axis.Label.TextStyle.Font = textStyle(axisSize, ink, false).Font
		axis.Label.TextStyle.Color = ink
		axis.Label.Padding = 4
		axis.Tick.Label.Font = labelStyle.Font
		axis.Tick.Label.Color = ink
	}
	return c
}

func (x *axes) add(data ...plot.Plotter) { x.data = append(x.data, data...) }

// draw draws the axes on top, and returns where data lies.
func (x *axes) draw(canvas draw.Canvas) draw.Canvas {
	area := x.DataCanvas(canvas)
	x.X.Tick.Marker = apart(&x.X, area)
	for _, d := range append([]plot.Plotter{&plotter.Grid{Vertical: gridStyle, Horizontal: gridStyle}}, x.data...) {
		d.Plot(area, x.Plot)
	}
	x.Draw(canvas)
	return area
}
