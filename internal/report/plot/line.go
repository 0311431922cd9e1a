package plot

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// line is one curve. A value that is not a number interrupts it.
type line struct {
	name  string // none: it is not named
	style seriesStyle
	at    plotter.XYs
	// lo and hi are the ends of whiskers at each point; nil for none
	values, hi []float64
	// marks are the points with a marker; nil for none
	marks []int
}

func (l *line) add(x, y float64) { l.at = append(l.at, plotter.XY{X: x, Y: y}) }

// last is the last point that is a number.
func (l *line) last() plotter.XY {
	for _, at := range slices.Backward(l.at) {
		if !math.IsNaN(at.Y) {
			return at
		}
	}
	return plotter.XY{}
}

// ordered sorts lines by where they end, the highest first.
func ordered(lines []line) []line {
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.last().Y, a.last().Y) })
	return lines
}

// values are those of the vertical axis.
func values(lines []line) (out []float64) {
	for i := range lines {
		for _, at := range lines[i].at {
			out = append(out, at.Y)
		}
	}
	return out
}

// strokes are the parts of the line, and its whiskers.
func (l *line) strokes() (out []plot.Plotter) {
	whiskers := plotter.YErrorBars{LineStyle: draw.LineStyle{Color: pale(l.style.line.Color), Width: 1.4}, CapWidth: 6}
	for i := range l.values {
		if at := l.at[i]; l.hi[i] > l.values[i] {
			whiskers.XYs = append(whiskers.XYs, at)
			whiskers.YErrors = append(whiskers.YErrors, struct{ Low, High float64 }{at.Y - l.values[i], l.hi[i] - at.Y})
		}
	}
	out = append(out, &whiskers)
	var part plotter.XYs
	end := func() {
		if len(part) > 1 {
			out = append(out, &plotter.Line{XYs: part, LineStyle: l.style.line})
		}
		part = nil
	}
	for _, at := range l.at {
		if math.IsNaN(at.Y) {
			end()
			continue
		}
		part = append(part, at)
	}
	end()
	return out
}

// markers of a line come after all lines, and do not drown in them.
func (l *line) markers() plot.Plotter {
	scatter := plotter.Scatter{GlyphStyle: l.style.glyph}
	for _, i := range l.marks {
		if !math.IsNaN(l.at[i].Y) {
			scatter.XYs = append(scatter.XYs, l.at[i])
		}
	}
	return &scatter
}

// segment is a straight line.
func segment(from, to plotter.XY, style draw.LineStyle) plot.Plotter {
	return &plotter.Line{XYs: plotter.XYs{from, to}, LineStyle: style}
}
