package text

import (
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text/layout"
)

// meterLines renders the figures that strategies count themselves.
func meterLines(group []results.Summary) []string {
	g := layout.Grid{Columns: []layout.Column{
		labelColumn, {Title: "figure", Left: true, Flexible: true, Minimum: 16}, {Title: "value"},
		{Title: "unit", Left: true}, {Title: "per\ndecision"}, {Title: "per\nadmitted"},
	}}
	for i := range group {
		s := &group[i]
		label := format.Plain(s.Label)
		for _, m := range s.Meter {
			if m.Value.Hi == 0 && m.Value.Lo == 0 {
				continue
			}
			value, unit, per := format.Count(int64(m.Value.Value)), format.Plain(m.Unit), format.Per
			if ns, ok := nanoseconds[m.Unit]; ok {
				value, unit = format.NS(m.Value.Value*ns), "time"
				per = func(x float64) string { return format.NS(x * ns) }
			}
			decision, admitted := "", ""
			if m.Kind == "" {
				decision, admitted = per(m.PerDecision), per(m.PerAdmitted)
			}
			g.Add(label, format.Plain(m.Name), value, unit, decision, admitted)
			label = ""
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return append([]string{"FIGURES OF THEIR OWN  what strategies count themselves, medians over rounds; figures of 0 are left out"}, g.Lines(layout.Width)...)
}

// nanoseconds in units of time, which are shown as other times are.
var nanoseconds = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6}
