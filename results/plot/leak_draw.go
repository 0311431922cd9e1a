package plot

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/results"
)

// verdictStyles tell by shape and colour what became of what is guaranteed about
// the leak. Other guarantees are no matter of this plot.
var verdictStyles = []struct {
	verdicts []string
	name     string
	color    color.NRGBA
	shape    draw.GlyphDrawer
}{
	{[]string{results.Kept}, "leak guarantee kept", palette[0], draw.CircleGlyph{}},
	{[]string{results.Violated}, "leak guarantee VIOLATED", palette[1], thickGlyph{}},
	{[]string{results.Undecided, results.NotExercised}, "undecided or not exercised", palette[4], draw.BoxGlyph{}},
	{[]string{""}, "guarantees nothing about leaks", palette[6], draw.PyramidGlyph{}},
}

func verdictStyle(verdict string) (name string, g draw.GlyphStyle) {
	for _, s := range verdictStyles {
		for _, v := range s.verdicts {
			if v == verdict {
				return s.name, draw.GlyphStyle{Color: s.color, Radius: dotRadius, Shape: s.shape}
			}
		}
	}
	return "", draw.GlyphStyle{Color: ink, Radius: dotRadius, Shape: draw.SquareGlyph{}}
}

func (g *leakFigure) labelStyle() draw.TextStyle { return textStyle(leakLabelStyle.size, ink, false) }

// blockHeight is the height that a text of one or more lines takes, from the
// ascenders of the first to the descenders of the last.
func blockHeight(s draw.TextStyle, txt string) vg.Length {
	e := s.FontExtents()
	return e.Ascent + e.Descent + vg.Length(strings.Count(txt, "\n"))*e.Height
}

func (g *leakFigure) draw(c draw.Canvas, simulated bool) {
	a := g.frame.area
	strip := g.frame.y.place(g.scale.strip/2, a.Min.Y, a.Max.Y)
	c.FillPolygon(subtle, []vg.Point{a.Min, {X: a.Max.X, Y: a.Min.Y}, {X: a.Max.X, Y: strip}, {X: a.Min.X, Y: strip}})
	if simulated {
		watermark(c, a)
	}
	g.frame.draw(c)
	// Zigzag: between 0 and the first decade the scale is broken.
	c.StrokeLine2(draw.LineStyle{Color: white, Width: 2.5}, a.Min.X, strip-3, a.Min.X, strip+3)
	c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.9}, a.Min.X-4, strip-5, a.Min.X+4, strip-1)
	c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.9}, a.Min.X-4, strip+1, a.Min.X+4, strip+5)

	thin := draw.LineStyle{Color: faint, Width: 0.6}
	s := g.labelStyle()
	for i, d := range g.dots {
		if from, to, ok := leader(label{dot: g.points[i]}, g.places[i]); ok {
			c.StrokeLine2(thin, from.X, from.Y, to.X, to.Y)
		}
		_, glyph := verdictStyle(d.LeakVerdict)
		whisker := draw.LineStyle{Color: faded(glyph.Color), Width: 1.4}
		for _, w := range g.whiskers[2*i : 2*i+2] {
			c.StrokeLine2(whisker, w.a.X, w.a.Y, w.b.X, w.b.Y)
		}
	}
	seen := map[string]bool{}
	for i, d := range g.dots {
		name, glyph := verdictStyle(d.LeakVerdict)
		seen[name] = true
		if !d.AtRate().ResponseCounts || d.Latency().P99.Struck {
			glyph.Color = faded(glyph.Color)
		}
		c.DrawGlyphNoClip(glyph, g.points[i])
		e := s.FontExtents()
		// FillText anchors the baseline of the last line.
		c.FillText(s, vg.Point{X: g.places[i].Min.X, Y: g.places[i].Min.Y + e.Descent}, g.labels[i])
	}
	g.legend(c, seen)
}

// faded is a colour for what goes with a dot but must not outshine it.
func faded(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	mix := func(v uint32) uint8 { return uint8((v>>8 + 2*255) / 3) }
	return color.NRGBA{mix(r), mix(g), mix(b), 255}
}

// legend explains the glyphs in use, and the note below it names who has none.
func (g *leakFigure) legend(c draw.Canvas, seen map[string]bool) {
	s := aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter)
	x, y := g.frame.area.Min.X, g.frame.area.Min.Y-52
	for _, v := range verdictStyles {
		if !seen[v.name] {
			continue
		}
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: v.color, Radius: dotRadius, Shape: v.shape}, vg.Point{X: x + 5, Y: y})
		c.FillText(s, vg.Point{X: x + 14, Y: y}, v.name)
		x += 14 + s.Width(v.name) + 22
	}
	footnote(c, fold(footnoteStyle(), g.note, c.Max.X-2*margin), g.bottom)
}
