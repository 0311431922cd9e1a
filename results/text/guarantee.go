package text

import (
	"slices"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text/layout"
)

// guaranteeLines renders what strategies guarantee, what the design records promise that
// they come from, and what came of both.
func guaranteeLines(page layout.Page, group []results.Summary) []string {
	own := func(s *results.Summary) []results.Clause { return s.Guarantee }
	records := func(s *results.Summary) []results.Clause { return s.Record }
	return append(clauseLines(page, group, "DECLARED GUARANTEES  in", own),
		clauseLines(page, group, "PROMISES OF THE DESIGN RECORDS  which decide nothing, in", records)...)
}

func clauseLines(page layout.Page, group []results.Summary, title string, of func(*results.Summary) []results.Clause) []string {
	unit := format.Plain(group[0].Params.Unit)
	g := layout.Grid{Columns: []layout.Column{
		labelColumn, {Title: "guarantee: at most", Left: true, Flexible: true, Minimum: 16},
		{Title: "worst\nmeasured"}, {Title: "bound", Left: true}, {Title: "verdict", Left: true, Tone: ToneOf},
	}}
	for i := range group {
		s := &group[i]
		for j, c := range of(s) {
			label := format.Plain(s.Label)
			if j > 0 {
				label = ""
			}
			g.Add(label, bound(c), format.Range(c.Certain, c.Possible), boundCell(c.Bound, unit), Verdict(c.Verdict))
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	out := append(page.Title(title+" the worst window of any subject and round"), page.Table(&g)...)
	note := "leak: admitted, L is the limit, bound and measured are beyond it; false rejects: units rejected although there was room"
	if slices.ContainsFunc(group, func(s results.Summary) bool {
		return slices.ContainsFunc(of(&s), func(c results.Clause) bool { return c.Verdict == results.Undecided })
	}) {
		note += "; undecided: what certainly happened keeps the bound, what possibly happened does not, or the load was too weak to tell"
	}
	return append(out, noteLines(page, note)...)
}

// boundCell is the largest amount that keeps the bound.
func boundCell(most int64, unit string) string {
	if most == quota.Unbounded {
		return "none"
	}
	return "≤ " + format.Units(most, unit)
}

// bound puts the property and its bound into one cell: two columns leave the
// formulas too little room to stay on one line.
func bound(c results.Clause) string {
	name := format.Plain(c.Property)
	if c.Property == results.FalseRejectProperty {
		name = "false rejects"
	}
	name += ": " + format.Plain(c.Formula)
	if c.Source != "" {
		name += " (" + format.Plain(c.Source) + ")"
	}
	return name
}

// settlementLines renders what became of admitted requests, where callers settle
// them.
func settlementLines(page layout.Page, group []results.Summary) []string {
	if !slices.ContainsFunc(group, func(s results.Summary) bool { return s.Settled != nil }) {
		return nil
	}
	const latency, above = "commit or refund takes", "above the limit"
	g := layout.Grid{Columns: []layout.Column{labelColumn, {Title: "commits"}, {Title: "refunds"}, {Title: "abandoned"}, {Title: "errors"},
		{Title: "overrun,\nunits", Optional: true}, {Title: "times", Over: above, Optional: true}, {Title: "unit-seconds", Over: above, Optional: true},
		{Title: "p50", Over: latency}, {Title: "p99", Over: latency}}}
	legend := marks{}
	rowsOf(&g, group, func(s *results.Summary) []string {
		x := s.Settled
		if x == nil {
			return []string{"-", "-", "-", "-", "", "", "", "-", "-"}
		}
		some := func(n int64, text string) string {
			if n == 0 {
				return ""
			}
			return text
		}
		return []string{format.Count(x.Commits), format.Count(x.Refunds), format.Count(x.Abandoned), format.Count(x.Errors),
			some(x.OverrunUnits, format.Count(x.OverrunUnits)), some(s.Leak.Excursions, format.Count(s.Leak.Excursions)), some(s.Leak.Excursions, format.Digits(s.Leak.UnitSeconds)),
			legend.percentile(x.Service.P50), legend.percentile(x.Service.P99)}
	})
	out := append(page.Title("SETTLEMENT  of admitted requests, all rounds together"), page.Table(&g)...)
	return append(out, legend.lines(page, "refunds: after failed work and after deletions; abandoned: never settled; times are of all rounds that are valid: "+keptOf(group, valid))...)
}

// valid has the rounds behind the times of settlements in place of those that are kept.
func valid(s *results.Summary) *results.Summary {
	return &results.Summary{Timed: s.Rounds - s.Invalid, Rounds: s.Rounds}
}
