package text

import (
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// OwnFigure is a figure that a strategy counts itself, as text.
type OwnFigure struct {
	Name, Value, Unit string
	// PerDecision and PerAdmitted are empty for levels and largest values.
	PerDecision, PerAdmitted string
}

// Own are a strategy's own figures, medians over rounds, without those of 0.
func Own(s *results.Summary) []OwnFigure {
	var out []OwnFigure
	for _, m := range s.Meter {
		if m.Value.Hi == 0 && m.Value.Lo == 0 {
			continue
		}
		f := OwnFigure{Name: format.Plain(m.Name), Value: format.Count(int64(m.Value.Value)), Unit: format.Plain(m.Unit)}
		per := format.Per
		if ns, ok := nanoseconds[m.Unit]; ok {
			f.Value, f.Unit = format.NS(m.Value.Value*ns), "time"
			per = func(x float64) string { return format.NS(x * ns) }
		}
		if m.Kind == "" {
			f.PerDecision, f.PerAdmitted = per(m.PerDecision), per(m.PerAdmitted)
		}
		out = append(out, f)
	}
	return out
}

// meterLines renders the figures that strategies count themselves.
func meterLines(page layout.Page, group []results.Summary) []string {
	g := layout.Grid{Columns: []layout.Column{
		labelColumn, {Title: "figure", Left: true, Flexible: true, Minimum: 16}, {Title: "value"},
		{Title: "unit", Left: true}, {Title: "per\ndecision"}, {Title: "per\nadmitted"},
	}}
	for i := range group {
		s := &group[i]
		label := format.Plain(s.Label)
		for _, f := range Own(s) {
			g.Add(label, f.Name, f.Value, f.Unit, f.PerDecision, f.PerAdmitted)
			label = ""
		}
	}
	return table(page, "FIGURES OF THEIR OWN  what strategies count themselves, medians over rounds; figures of 0 are left out", &g, "")
}

// nanoseconds in units of time, which are shown as other times are.
var nanoseconds = map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6}
