package plot

import (
	"image/color"
	"math"
	"strconv"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationmonoregular"
	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"

	"github.com/quotabench/quotabench/internal/format"

	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	white  = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	ink    = color.NRGBA{0x22, 0x22, 0x22, 0xff}
	faint  = color.NRGBA{0x66, 0x66, 0x66, 0xff}
	rule   = color.NRGBA{0xe2, 0xe2, 0xe2, 0xff}
	subtle = color.NRGBA{0xf3, 0xf3, 0xf3, 0xff}
	amber  = color.NRGBA{0x9a, 0x5b, 0x00, 0xff}
)

// fonts holds the three faces that plots use. Taking them one by one leaves the
// nine others of the family out of the binary.
var fonts = sync.OnceValue(func() *font.Cache {
	face := func(variant font.Variant, weight xfont.Weight, ttf []byte) font.Face {
		f, err := opentype.Parse(ttf)
		if err != nil {
			panic("embedded font: " + err.Error()) // the bytes are compiled in
		}
		return font.Face{Font: font.Font{Typeface: "Liberation", Variant: variant, Weight: weight}, Face: f}
	}
	return font.NewCache(font.Collection{
		face("Sans", xfont.WeightNormal, liberationsansregular.TTF), face("Sans", xfont.WeightBold, liberationsansbold.TTF),
		face("Mono", xfont.WeightNormal, liberationmonoregular.TTF),
	})
})

// drawable replaces characters that the font does not have, which would take no
// room at all.
func drawable(s string) string {
	face := fonts().Lookup(textStyle(labelSize, ink, false).Font, labelSize)
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
	return draw.TextStyle{Color: c, Font: f, Handler: text.Plain{Fonts: fonts()}}
}

// aligned returns the style with another anchor.
func aligned(s draw.TextStyle, x text.XAlignment, y text.YAlignment) draw.TextStyle {
	s.XAlign, s.YAlign = x, y
	return s
}

// fold breaks a line into lines no wider than width, at spaces, or after commas
// and colons where a word is too long; a word without either stays whole.
func fold(s draw.TextStyle, line string, width vg.Length) string {
	var out []string
	cur := ""
	for _, word := range strings.SplitAfter(line, " ") {
		if s.Width(strings.TrimRight(word, " ")) > width {
			word = strings.NewReplacer(",", ",\x00", ":", ":\x00", "=", "=\x00").Replace(word)
		}
		for _, part := range strings.Split(word, "\x00") {
			if cur != "" && s.Width(strings.TrimRight(cur+part, " ")) > width {
				out = append(out, strings.TrimRight(cur, " "))
				cur = ""
			}
			cur += part
		}
	}
	return strings.Join(append(out, strings.TrimRight(cur, " ")), "\n")
}

// tick marks a place on an axis, in the axis' own coordinate. Ticks without a
// label are minor ones.
type tick struct {
	at    float64
	label string
}

// axis maps its own linear coordinate, [lo, hi], to a side of the drawing.
type axis struct {
	title  string
	lo, hi float64
	ticks  []tick
}

func (a axis) place(v float64, from, to vg.Length) vg.Length {
	return from + vg.Length((v-a.lo)/(a.hi-a.lo))*(to-from)
}

// frame is the area of a plot that holds data, and the two axes around it.
type frame struct {
	area vg.Rectangle
	x, y axis
}

func (f frame) point(x, y float64) vg.Point {
	return vg.Point{X: f.x.place(x, f.area.Min.X, f.area.Max.X), Y: f.y.place(y, f.area.Min.Y, f.area.Max.Y)}
}

const (
	titleSize   = 15
	captionSize = 9.5
	axisSize    = 11
	tickSize    = 10
	labelSize   = 10
	margin      = vg.Length(18)
)

// heading draws title and caption at the top and returns how far down they reach.
func heading(c draw.Canvas, title, caption string, simulated bool) vg.Length {
	top := c.Max.Y - margin
	ts := aligned(textStyle(titleSize, ink, true), text.XLeft, text.YTop)
	c.FillText(ts, vg.Point{X: margin, Y: top}, title)
	top -= ts.Height(title) + 5
	cs := captionStyle(simulated)
	caption = fold(cs, caption, c.Max.X-2*margin)
	c.FillText(cs, vg.Point{X: margin, Y: top}, caption)
	return top - cs.Height(caption)
}

// captionStyle is that of the line below a title.
func captionStyle(simulated bool) draw.TextStyle {
	c := color.Color(faint)
	if simulated {
		c = amber
	}
	return aligned(textStyle(captionSize, c, false), text.XLeft, text.YTop)
}

// draw paints grid, axes and titles; data comes on top of it.
func (f frame) draw(c draw.Canvas) {
	grid := draw.LineStyle{Color: rule, Width: 0.7}
	edge := draw.LineStyle{Color: faint, Width: 0.9}
	a := f.area
	tx := aligned(textStyle(tickSize, ink, false), text.XCenter, text.YTop)
	for _, t := range f.x.ticks {
		x := f.x.place(t.at, a.Min.X, a.Max.X)
		length := vg.Length(2.5)
		if t.label != "" {
			c.StrokeLine2(grid, x, a.Min.Y, x, a.Max.Y)
			c.FillText(tx, vg.Point{X: x, Y: a.Min.Y - 7}, t.label)
			length = 4.5
		}
		c.StrokeLine2(edge, x, a.Min.Y, x, a.Min.Y-length)
	}
	c.StrokeLine2(edge, a.Min.X, a.Min.Y, a.Max.X, a.Min.Y)
	xs := aligned(textStyle(axisSize, ink, false), text.XCenter, text.YTop)
	if f.x.title != "" {
		c.FillText(xs, vg.Point{X: (a.Min.X + a.Max.X) / 2, Y: a.Min.Y - 26}, f.x.title)
	}
	f.drawY(c)
}

// drawY paints the vertical axis with its grid.
func (f frame) drawY(c draw.Canvas) {
	grid := draw.LineStyle{Color: rule, Width: 0.7}
	edge := draw.LineStyle{Color: faint, Width: 0.9}
	a := f.area
	ty := aligned(textStyle(tickSize, ink, false), text.XRight, text.YCenter)
	widest := vg.Length(0)
	for _, t := range f.y.ticks {
		y := f.y.place(t.at, a.Min.Y, a.Max.Y)
		length := vg.Length(2.5)
		if t.label != "" {
			c.StrokeLine2(grid, a.Min.X, y, a.Max.X, y)
			c.FillText(ty, vg.Point{X: a.Min.X - 8, Y: y}, t.label)
			widest = max(widest, ty.Width(t.label))
			length = 4.5
		}
		c.StrokeLine2(edge, a.Min.X, y, a.Min.X-length, y)
	}
	c.StrokeLine2(edge, a.Min.X, a.Min.Y, a.Min.X, a.Max.Y)
	if f.y.title == "" {
		return
	}
	ys := aligned(textStyle(axisSize, ink, false), text.XCenter, text.YBottom)
	ys.Rotation = math.Pi / 2
	c.FillText(ys, vg.Point{X: a.Min.X - 14 - widest, Y: (a.Min.Y + a.Max.Y) / 2}, f.y.title)
}

// watermark marks a drawing that does not come from a measurement.
func watermark(c draw.Canvas, area vg.Rectangle) {
	s := aligned(textStyle(54, subtle, true), text.XCenter, text.YCenter)
	s.Rotation = math.Pi / 9
	c.FillText(s, vg.Point{X: (area.Min.X + area.Max.X) / 2, Y: (area.Min.Y + area.Max.Y) / 2}, "SIMULATED")
}

// timeAxis is logarithmic, from lo to hi nanoseconds.
func timeAxis(title string, lo, hi float64) axis {
	lo, hi = max(lo, 1), max(hi, 1)
	a := axis{title: title, lo: math.Log10(lo) - 0.04, hi: math.Log10(hi) + 0.04}
	if short := 0.5 - (a.hi - a.lo); short > 0 { // keep noise from looking like a difference
		a.lo, a.hi = a.lo-short/2, a.hi+short/2
	}
	a.ticks = logTicks(a.lo, a.hi, func(m float64, exponent int) string { return tickNS(m * math.Pow10(exponent)) })
	return a
}

// logTicks marks 1 to 9 in every decade of a logarithmic axis. It labels full
// decades, or also 2 and 5, or all nine, whatever it takes to label three.
func logTicks(lo, hi float64, name func(m float64, exponent int) string) []tick {
	var ticks []tick
	for _, labelled := range []string{"1", "125", "123456789"} {
		ticks = nil
		n := 0
		for d := int(math.Floor(lo)); float64(d) <= hi; d++ {
			for m := 1; m < 10; m++ {
				at := float64(d) + math.Log10(float64(m))
				if at < lo || at > hi {
					continue
				}
				t := tick{at: at}
				if strings.Contains(labelled, strconv.Itoa(m)) {
					t.label = name(float64(m), d)
					n++
				}
				ticks = append(ticks, t)
			}
		}
		if n >= 3 {
			break
		}
	}
	return ticks
}

// tickNS renders a round duration without needless digits, e.g. "200 µs".
func tickNS(ns float64) string {
	div, unit := format.TimeUnit(ns)
	return format.TrimZeros(format.Digits(ns/div)) + " " + unit
}
