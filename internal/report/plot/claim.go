package plot

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/figures"
)

// Claim draws the curve of a claim, and the limit of its condition. It returns [ErrNothingToPlot] if no value of the sweep has the figure.
func Claim(j *claims.Judgement) (*Plot, error) {
	c := j.Curve
	if c == nil || len(c.Points) == 0 {
		return nil, fmt.Errorf("%w: %s has no curve", ErrNothingToPlot, j.ID)
	}
	p := newPanel(c.Shown)
	var at []string
	for _, x := range c.Points {
		at = append(at, x.At)
	}
	place := settingsAxis(&p.X, c.Parameter, at)
	l := line{name: "here", style: styleOf(0)}
	limit := line{name: "the condition's limit", style: styleOf(1)}
	var extent []float64
	var told []string
	note := ""
	for i, x := range c.Points {
		l.marks = append(l.marks, i)
		l.add(place[x.At], x.Value)
		l.lo = append(l.lo, x.Lo)
		l.hi = append(l.hi, x.Hi)
		extent = append(extent, x.Value, x.Lo, x.Hi)
		if x.Lo < x.Hi {
			note = "Whiskers: what is known of the figure."
		}
		told = append(told, claims.Number{Value: x.Value, Lo: x.Value, Hi: x.Value, Unit: c.Unit}.Text()+" at "+x.At)
		if c.Limit != nil {
			limit.add(place[x.At], *c.Limit)
			extent = append(extent, *c.Limit)
		}
	}
	p.lines = append(p.lines, l)
	if c.Limit != nil {
		limit.style.line.Dashes = boundaryStyle.Dashes
		p.lines = append(p.lines, limit)
	}
	switch c.Unit {
	case figures.Nanoseconds:
		latencyAxis(&p.Y, extent)
	case figures.Percent:
		percentAxis(&p.Y, extent)
		p.title += ", logarithmic"
	default:
		linearAxis(&p.Y, extent)
	}
	p.Y.Padding = 14
	title := drawable(fmt.Sprintf("%s %s: %s", j.Record, j.ID, strings.TrimSuffix(format.Plain(j.Says), ".")))
	return (&figure{panels: []*panel{p}, sheet: sheet{
		title: title, caption: c.Shown + " against " + c.Parameter, simulated: c.Simulated,
		note: note, desc: drawable(c.Shown + ": " + strings.Join(told, ", ") + "."),
	}}).plot(), nil
}
