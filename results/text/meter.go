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
			decision, admitted := "", ""
			if m.Kind == "" {
				decision, admitted = format.Per(m.PerDecision), format.Per(m.PerAdmitted)
			}
			g.Add(label, format.Plain(m.Name), format.Count(int64(m.Value.Value)), format.Plain(m.Unit), decision, admitted)
			label = ""
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return append([]string{"FIGURES OF THEIR OWN  what strategies count themselves, medians over rounds; figures of 0 are left out"}, g.Lines(layout.Width)...)
}
