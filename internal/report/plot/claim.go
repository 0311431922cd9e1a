package plot

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/condition"
	"github.com/quotabench/quotabench/internal/report/figures"
)

// Claim draws the curve of a claim, and the limit of its condition. It returns [ErrNothingToPlot] if no value of the
// sweep has the figure.
func Claim(j *claims.Judgement) (*Plot, error) {
	curve := j.Curve
	if curve == nil || len(curve.Points) == 0 {
		return nil, fmt.Errorf("%w: %s has no curve", ErrNothingToPlot, j.ID)
	}
	p := newPanel(curve.Shown)
	var at []string
	for _, point := range curve.Points {
		at = append(at, point.At)
	}
	place := settingsAxis(&p.X, curve.Parameter, at)
	l := line{name: "here", style: styleOf(0)}
	limit := line{name: "the condition's limit", style: styleOf(1)}
	var extent []float64
	var told []string
	note := ""
	for i, point := range curve.Points {
		l.marks = append(l.marks, i)
		l.add(place[point.At], point.Value)
		l.values = append(l.values, point.Lo)
		l.hi = append(l.hi, point.Hi)
		extent = append(extent, point.Value, point.Lo, point.Hi)
		if point.Lo < point.Hi {
			note = "Whiskers: what is known of the figure."
		}
		told = append(told, condition.Number{Value: point.Value, Lo: point.Value, Hi: point.Value, Unit: curve.Unit}.Text()+
			" at "+point.At)
		if curve.Limit != nil {
			limit.add(place[point.At], *curve.Limit)
			extent = append(extent, *curve.Limit)
		}
	}
	p.lines = append(p.lines, l)
	if curve.Limit != nil {
		limit.style.line.Dashes = boundaryStyle.Dashes
		p.lines = append(p.lines, limit)
	}
	switch curve.Unit {
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
		title: title, caption: curve.Shown + " against " + curve.Parameter, simulated: curve.Simulated,
		note: note, desc: drawable(curve.Shown + ": " + strings.Join(told, ", ") + "."),
	}}).plot(), nil
}
