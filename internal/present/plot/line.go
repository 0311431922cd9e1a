package plot

import (
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// line is one curve, in the coordinates of the axes. A value that is not a number
// interrupts it.
type line struct {
	name  string // none: it is not named
	style seriesStyle
	x, y  []float64
	// whiskers from lo to hi at each point; nil for none
	lo, hi []float64
	// marks are the points with a marker; nil for none
	marks []int
	// faint is the point from which the line is pale; len(x) for none
	faint int
	// pale are points whose marker is pale
	pale []bool
	step bool // values hold until the next point
}

// cut ends the line where it leaves the frame at the top.
func (l *line) cut(top float64) {
	for i, y := range l.y {
		if y <= top {
			continue
		}
		if i > 0 {
			l.x[i] = l.x[i-1] + (l.x[i]-l.x[i-1])*(top-l.y[i-1])/(y-l.y[i-1])
		}
		l.x, l.y = l.x[:i+1], append(l.y[:i:i], top)
		l.marks = slices.DeleteFunc(slices.Clone(l.marks), func(k int) bool { return k >= i })
		l.faint = min(l.faint, i+1)
		return
	}
}

// last is the last point that is a number, or -1.
func (l *line) last() int {
	for i := len(l.y) - 1; i >= 0; i-- {
		if !math.IsNaN(l.y[i]) {
			return i
		}
	}
	return -1
}

// draw draws a line with its whiskers, and returns the height at which it ends.
func (l *line) draw(c draw.Canvas, f frame) (end vg.Length) {
	whisker := draw.LineStyle{Color: pale(l.style.line.Color), Width: 1.4}
	for i := range l.lo {
		if math.IsNaN(l.y[i]) || !(l.hi[i] > l.lo[i]) {
			continue
		}
		from, to := f.point(l.x[i], max(l.lo[i], f.y.lo)), f.point(l.x[i], min(l.hi[i], f.y.hi))
		c.StrokeLine2(whisker, from.X, from.Y, to.X, to.Y)
		c.StrokeLine2(whisker, from.X-3, from.Y, from.X+3, from.Y)
		c.StrokeLine2(whisker, to.X-3, to.Y, to.X+3, to.Y)
	}
	end = f.area.Min.Y
	var run []vg.Point
	style := l.style.line
	flush := func() {
		if len(run) > 1 {
			c.StrokeLines(style, run)
		}
		run = nil
	}
	for i := range l.x {
		if math.IsNaN(l.y[i]) {
			flush()
			continue
		}
		p := f.point(l.x[i], l.y[i])
		if l.step && len(run) > 0 {
			run = append(run, vg.Point{X: p.X, Y: run[len(run)-1].Y})
		}
		run, end = append(run, p), p.Y
		if i+1 == l.faint {
			flush()
			style.Color, run = pale(style.Color), []vg.Point{p}
		}
		if l.faint == 0 && i == 0 {
			style.Color = pale(style.Color)
		}
	}
	flush()
	return end
}

func (l *line) drawMarks(c draw.Canvas, f frame) {
	for _, i := range l.marks {
		if math.IsNaN(l.y[i]) {
			continue
		}
		style := l.style
		if i >= l.faint || l.pale != nil && l.pale[i] {
			style.glyph.Color = pale(style.glyph.Color)
		}
		style.mark(&c, f.point(l.x[i], l.y[i]))
	}
}
