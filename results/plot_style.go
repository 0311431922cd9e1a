package results

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{},
}

// crossGlyph is a bold cross. The library's own is a hairline.
type crossGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (crossGlyph) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, p vg.Point) {
	style := draw.LineStyle{Color: s.Color, Width: 2}
	r := s.Radius * 0.8
	c.StrokeLine2(style, p.X-r, p.Y-r, p.X+r, p.Y+r)
	c.StrokeLine2(style, p.X-r, p.Y+r, p.X+r, p.Y-r)
}

// seriesStyle is how one strategy is drawn.
type seriesStyle struct {
	line  draw.LineStyle
	glyph draw.GlyphStyle
}

// styleOf returns the style of the n-th strategy. Colours, dashes and glyphs
// have cycles of 7, 4 and 6, so that 84 styles differ and neighbours differ in
// all three: nobody has to tell two lines apart by colour alone.
func styleOf(n int) seriesStyle {
	c := palette[n%len(palette)]
	return seriesStyle{
		line:  draw.LineStyle{Color: c, Width: 1.6, Dashes: dashes[n%len(dashes)]},
		glyph: draw.GlyphStyle{Color: c, Radius: 2.8, Shape: glyphs[n%len(glyphs)]},
	}
}
