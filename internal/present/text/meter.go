package text

import (
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Own are the figures that a strategy counts itself, medians over rounds, without those of 0.
var Own = Rows{
	Columns: []layout.Column{
		{Title: "figure", Left: true, Flexible: true, Minimum: 16}, {Title: "value"},
		{Title: "unit", Left: true}, {Title: "per\ndecision"}, {Title: "per\nadmitted"},
	},
	Of: func(s *results.Summary) (out [][]string) {
		for _, m := range s.Meter {
			if m.Value.Hi == 0 && m.Value.Lo == 0 {
				continue
			}
			unit, per := format.Plain(m.Unit), format.Per
			show := func(x float64) string { return format.Count(int64(x)) }
			if ns, ok := nanoseconds[m.Unit]; ok {
				show = func(x float64) string { return format.NS(x * ns) }
				unit, per = "time", show
			}
			cells := []string{format.Plain(m.Name), show(m.Value.Value), unit, "", ""}
			if m.Kind == "" { // levels and largest values are of no decision
				cells[3], cells[4] = per(m.PerDecision), per(m.PerAdmitted)
			}
			out = append(out, cells)
		}
		return out
	},
}

// meterLines renders the figures that strategies count themselves.
func meterLines(page layout.Page, group []results.Summary) []string {
	return table(page, "FIGURES OF THEIR OWN  what strategies count themselves, medians over rounds; figures of 0 are left out",
		Own.grid(group), "")
}

// nanoseconds in units of time, which are shown as other times are.
var nanoseconds = map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6}
