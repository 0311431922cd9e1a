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
	extent := curveLines(p, curve, place)
	note := ""
	var told []string
	for _, point := range curve.Points {
		if point.Lo < point.Hi {
			note = "Whiskers: what is known of the figure."
		}
		value := condition.Number{Value: point.Value, Lo: point.Value, Hi: point.Value, Unit: curve.Unit}
		told = append(told, value.Text()+" at "+point.At)
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

// curveLines adds the figure and, if there is one, the limit of the condition to a panel. It returns what the axis of
// figures has to hold.
func curveLines(p *panel, curve *claims.Curve, place map[string]float64) (extent []float64) {
	here := line{name: "here", style: styleOf(0)}
	limit := line{name: "the condition's limit", style: styleOf(1)}
	for i, point := range curve.Points {
		here.marks = append(here.marks, i)
		here.add(place[point.At], point.Value)
		here.values = append(here.values, point.Lo)
		here.hi = append(here.hi, point.Hi)
		extent = append(extent, point.Value, point.Lo, point.Hi)
		if curve.Limit != nil {
			limit.add(place[point.At], *curve.Limit)
			extent = append(extent, *curve.Limit)
		}
	}
	p.lines = append(p.lines, here)
	if curve.Limit != nil {
		limit.style.line.Dashes = boundaryStyle.Dashes
		p.lines = append(p.lines, limit)
	}
	return extent
}
