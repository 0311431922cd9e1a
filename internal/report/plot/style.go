package plot

import (
	"image/color"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/report/text/layout"
)

var (
	white  = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	ink    = color.NRGBA{0x22, 0x22, 0x22, 0xff}
	faint  = color.NRGBA{0x66, 0x66, 0x66, 0xff}
	subtle = color.NRGBA{0xf3, 0xf3, 0xf3, 0xff}
	amber  = color.NRGBA{0x9a, 0x5b, 0x00, 0xff}
	away   = color.NRGBA{0xf6, 0xee, 0xd8, 0xff} // the ground behind an outage
)

var (
	gridStyle = draw.LineStyle{Color: color.NRGBA{0xe2, 0xe2, 0xe2, 0xff}, Width: 0.7}
	edgeStyle = draw.LineStyle{Color: faint, Width: 0.9}
)

const (
	titleSize   = 15
	captionSize = 9.5
	axisSize    = 11
	labelSize   = 10
	margin      = vg.Length(18)
)

// The styles of text: of labels right and left of what they name, of titles, and of captions
// and notes.
var (
	labelStyle   = aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter)
	leftStyle    = aligned(textStyle(labelSize, ink, false), text.XRight, text.YCenter)
	panelStyle   = textStyle(axisSize, ink, true)
	titleStyle   = aligned(textStyle(titleSize, ink, true), text.XLeft, text.YTop)
	captionStyle = aligned(textStyle(captionSize, faint, false), text.XLeft, text.YTop)
)

// drawable replaces characters that the font does not have, which would take no
// room at all.
func drawable(s string) string {
	face := font.DefaultCache.Lookup(labelStyle.Font, labelSize)
	return strings.Map(func(r rune) rune {
		if i, err := face.Face.GlyphIndex(nil, r); err != nil || i == 0 {
			return '?'
		}
		return r
	}, s)
}

// textStyle of a size in points, set by its left end and baseline.
func textStyle(size float64, c color.Color, bold bool) draw.TextStyle {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: font.Length(size)}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return draw.TextStyle{Color: c, Font: f, Handler: plot.DefaultTextHandler}
}

// aligned returns the style with another anchor.
func aligned(style draw.TextStyle, alignment text.XAlignment, yAlignment text.YAlignment) draw.TextStyle {
	style.XAlign = alignment
	style.YAlign = yAlignment
	return style
}

// height is that of a text of one or more lines, from the ascenders of the first to the
// descenders of the last; 0 for none.
func height(style draw.TextStyle, txt string) vg.Length {
	if txt == "" {
		return 0
	}
	extents := style.FontExtents()
	return extents.Ascent + extents.Descent + vg.Length(strings.Count(txt, "\n"))*extents.Height
}

// fold breaks a line into lines no wider than width.
func fold(style draw.TextStyle, line string, width vg.Length) string {
	return strings.Join(layout.Fold(line, width, func(character string) vg.Length { return style.Width(character) }), "\n")
}

// palette is the one of Okabe and Ito, told apart with every common kind of
// colour blindness, less its yellow, which vanishes on white.
var palette = []color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff}, // blue
	{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	{0x00, 0x9e, 0x73, 0xff}, // bluish green
	{0xcc, 0x79, 0xa7, 0xff}, // reddish purple
	{0xe6, 0x9f, 0x00, 0xff}, // orange
	{0x56, 0xb4, 0xe9, 0xff}, // sky blue
	{0x33, 0x33, 0x33, 0xff}, // near black
}

var dashes = [][]vg.Length{nil, {6, 2.5}, {1.5, 2}, {8, 2.5, 1.5, 2.5}}

var glyphs = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, lineGlyph{draw.CrossGlyph{}, 2},
	lineGlyph{draw.RingGlyph{}, 1.2},
	lineGlyph{draw.SquareGlyph{}, 1.2}, lineGlyph{draw.TriangleGlyph{}, 1.2}, lineGlyph{draw.PlusGlyph{}, 2},
}

// lineGlyph is a glyph of lines of some width. The library's own are hairlines.
type lineGlyph struct {
	draw.GlyphDrawer
	width vg.Length
}

// DrawGlyph implements draw.GlyphDrawer.
func (g lineGlyph) DrawGlyph(canvas *draw.Canvas, style draw.GlyphStyle, point vg.Point) {
	wide := *canvas
	wide.Canvas = wideCanvas{canvas.Canvas, g.width}
	g.GlyphDrawer.DrawGlyph(&wide, style, point)
}

// wideCanvas draws all lines with one width.
type wideCanvas struct {
	vg.Canvas
	width vg.Length
}

// SetLineWidth implements vg.Canvas.
func (c wideCanvas) SetLineWidth(vg.Length) { c.Canvas.SetLineWidth(c.width) }

// groundedGlyph is a glyph on a white ground, so that it does not drown in lines.
type groundedGlyph struct{ draw.GlyphDrawer }

// DrawGlyph implements draw.GlyphDrawer.
func (g groundedGlyph) DrawGlyph(canvas *draw.Canvas, style draw.GlyphStyle, point vg.Point) {
	canvas.DrawGlyphNoClip(draw.GlyphStyle{Color: white, Radius: style.Radius + 1.5, Shape: draw.CircleGlyph{}}, point)
	canvas.SetColor(style.Color)
	g.GlyphDrawer.DrawGlyph(canvas, style, point)
}

// seriesStyle is how one strategy is drawn.
type seriesStyle struct {
	line  draw.LineStyle
	glyph draw.GlyphStyle
}

// pale is the colour mixed with the white of the ground.
func pale(c color.Color) color.Color {
	const keep = 0.5
	r, g, b, _ := c.RGBA()
	mix := func(v uint32) uint8 { return uint8(255 - keep*(255-float64(v>>8))) }
	return color.NRGBA{mix(r), mix(g), mix(b), 0xff}
}

// styleOf returns the style of the n-th line. Colours, dashes and markers have
// cycles of 7, 4 and 8, so 56 styles differ, neighbours differ in all three,
// and lines of one colour differ in both others: no reader has to tell two lines
// apart by colour alone.
func styleOf(n int) seriesStyle {
	nrgba := palette[n%len(palette)]
	return seriesStyle{
		line:  draw.LineStyle{Color: nrgba, Width: 1.6, Dashes: dashes[n%len(dashes)]},
		glyph: draw.GlyphStyle{Color: nrgba, Radius: 3.2, Shape: groundedGlyph{glyphs[n%len(glyphs)]}},
	}
}
