package plot

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
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, thickGlyph{}, hollowGlyph{draw.CircleGlyph{}, 1.2},
	hollowGlyph{draw.BoxGlyph{}, 1.2}, hollowGlyph{draw.PyramidGlyph{}, 1.4}, thickGlyph{upright: true},
}

// thickGlyph is a bold cross, or a plus. The library's own are hairlines.
type thickGlyph struct{ upright, thin bool }

// hollowGlyph is the outline of another one, of some width. The library's own are
// hairlines.
type hollowGlyph struct {
	draw.GlyphDrawer
	width vg.Length
}

// DrawGlyph implements draw.GlyphDrawer.
func (g hollowGlyph) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, p vg.Point) {
	if t, ok := g.GlyphDrawer.(thickGlyph); ok { // a cross has no inside
		t.thin = true
		t.DrawGlyph(c, s, p)
		return
	}
	s.Shape = g.GlyphDrawer
	c.DrawGlyphNoClip(s, p)
	s.Color, s.Radius = white, s.Radius-g.width
	c.DrawGlyphNoClip(s, p)
}

// DrawGlyph implements draw.GlyphDrawer.
func (g thickGlyph) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, p vg.Point) {
	style := draw.LineStyle{Color: s.Color, Width: 2}
	if g.thin {
		style.Width = 0.8
	}
	if r := s.Radius; g.upright {
		c.StrokeLine2(style, p.X-r, p.Y, p.X+r, p.Y)
		c.StrokeLine2(style, p.X, p.Y-r, p.X, p.Y+r)
		return
	}
	r := s.Radius * 0.8
	c.StrokeLine2(style, p.X-r, p.Y-r, p.X+r, p.Y+r)
	c.StrokeLine2(style, p.X-r, p.Y+r, p.X+r, p.Y-r)
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

// mark draws the marker on a white ground.
func (s seriesStyle) mark(c *draw.Canvas, at vg.Point) {
	c.DrawGlyphNoClip(draw.GlyphStyle{Color: white, Radius: s.glyph.Radius + 1.5, Shape: draw.CircleGlyph{}}, at)
	c.DrawGlyphNoClip(s.glyph, at)
}

// styleOf returns the style of the n-th line. Colours, dashes and markers have
// cycles of 7, 4 and 8, so that 56 styles differ, neighbours differ in all three,
// and lines of one colour differ in both others: no reader has to tell two lines
// apart by colour alone.
func styleOf(n int) seriesStyle {
	c := palette[n%len(palette)]
	return seriesStyle{
		line:  draw.LineStyle{Color: c, Width: 1.6, Dashes: dashes[n%len(dashes)]},
		glyph: draw.GlyphStyle{Color: c, Radius: 3.2, Shape: glyphs[n%len(glyphs)]},
	}
}
