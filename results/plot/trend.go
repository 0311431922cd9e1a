package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
)

// Trend is a quantity against another that spans orders of magnitude.
type Trend struct {
	// Title stands above the panel.
	Title string
	// X and Y name the axes, with their units.
	X, Y string
	// Lines in any order.
	Lines []TrendLine
}

// TrendLine is a line of a trend.
type TrendLine struct {
	Name string
	// X and Y are the points, in the order of X, all above 0.
	X, Y []float64
}

// Trends draws panels one below the other, with logarithmic axes: what is in proportion
// rises by a decade per decade. It returns [ErrNothingToPlot] where a panel has no point.
func Trends(title, caption, note string, all ...Trend) (*Plot, error) {
	g := figure{title: drawable(title), caption: caption, note: note, width: 900, least: 240}
	var told, names []string
	short := func(v float64) string { return format.TrimZeros(format.Digits(v)) }
	for _, t := range all {
		p := panel{title: drawable(t.Title)}
		var xs, ys []float64
		for _, l := range t.Lines {
			xs, ys = append(xs, l.X...), append(ys, l.Y...)
		}
		if len(xs) == 0 || slices.Min(xs) <= 0 || slices.Min(ys) <= 0 {
			return nil, fmt.Errorf("%w: %s has no point, or one that is not above 0", ErrNothingToPlot, t.Title)
		}
		p.x, p.y = decades(drawable(t.X), xs), decades(drawable(t.Y), ys)
		for _, l := range t.Lines {
			drawn := line{name: drawable(l.Name), faint: len(l.X)}
			for i := range l.X {
				x, y := math.Log10(l.X[i]), math.Log10(l.Y[i])
				drawn.marks = append(drawn.marks, i)
				drawn.x, drawn.y = append(drawn.x, x), append(drawn.y, y)
				drawn.lo, drawn.hi, drawn.pale = append(drawn.lo, y), append(drawn.hi, y), append(drawn.pale, false)
			}
			if n := len(l.X); n > 0 {
				told = append(told, fmt.Sprintf("%s: %s at %s, %s at %s", format.Join(", ", t.Title, l.Name), short(l.Y[0]), short(l.X[0]), short(l.Y[n-1]), short(l.X[n-1])))
				p.lines = append(p.lines, drawn)
			}
		}
		slices.SortStableFunc(p.lines, func(a, b line) int { return compareFloat(b.y[b.last()], a.y[a.last()]) })
		for k := range p.lines { // a name has one style in all panels
			if !slices.Contains(names, p.lines[k].name) {
				names = append(names, p.lines[k].name)
			}
			p.lines[k].style = styleOf(slices.Index(names, p.lines[k].name))
		}
		g.panels = append(g.panels, p)
	}
	g.desc = drawable(title + ". " + strings.Join(told, "; ") + ".")
	return g.plot(), nil
}

// decades is a logarithmic axis with some room around the values.
func decades(title string, values []float64) axis {
	lo, hi := math.Log10(slices.Min(values)), math.Log10(slices.Max(values))
	room := max(0.04*(hi-lo), 0.05)
	a := axis{title: title, lo: lo - room, hi: hi + room}
	a.ticks = logTicks(a.lo, a.hi, func(m float64, exponent int) string {
		v := m * math.Pow10(exponent)
		if v < 1 {
			return strconv.FormatFloat(v, 'g', 3, 64)
		}
		return tickValue(v)
	})
	return a
}
