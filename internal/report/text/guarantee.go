package text

import (
	"slices"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// guarantees are what strategies guarantee, and what came of it.
func guarantees(group []results.Summary) document.Section {
	return clauseTable(group, "DECLARED GUARANTEES  in", func(summary *results.Summary) []results.Clause {
		return summary.Guarantee
	})
}

// promises are what the design records promise that strategies come from, and what came of it.
func promises(group []results.Summary) document.Section {
	return clauseTable(group, "PROMISES OF THE DESIGN RECORDS  which decide nothing, in",
		func(summary *results.Summary) []results.Clause { return summary.Record })
}

// Clauses are promises of a strategy, and what came of them.
func Clauses(of func(*results.Summary) []results.Clause) Rows {
	return Rows{
		Columns: []document.Column{
			{Title: "guarantee: at most", Left: true, Flexible: true, Minimum: 16},
			{Title: "worst\nmeasured"}, {Title: "bound", Left: true}, {Title: "verdict", Left: true, Tone: ToneOf},
		},
		Of: func(summary *results.Summary) (out [][]string) {
			for _, clause := range of(summary) {
				most := "none"
				if figures.Bounded(&clause) {
					most = "≤ " + format.Units(clause.Bound, format.Plain(summary.Params.Unit))
				}
				out = append(out, []string{bound(clause), format.Range(clause.Certain, clause.Possible), most,
					Verdict(clause.Verdict)})
			}
			return out
		},
	}
}

func clauseTable(group []results.Summary, title string,
	of func(*results.Summary) []results.Clause) document.Section {
	clauses := Clauses(of)
	note := "leak: admitted, L is the limit, bound and measured are beyond it; " +
		"false rejects: units rejected although there was room"
	if slices.ContainsFunc(group, func(summary results.Summary) bool {
		return slices.ContainsFunc(of(&summary), func(clause results.Clause) bool {
			return clause.Verdict == results.Undecided
		})
	}) {
		note += "; undecided: what certainly happened keeps the bound, what possibly happened does not, " +
			"or the load was too weak to tell"
	}
	return titled(title+" the worst window of any subject and round", clauses.grid(group), note)
}

// bound puts the property and its bound into one cell: two columns leave the
// formulas too little room to stay on one line.
func bound(clause results.Clause) string {
	name := format.Plain(clause.Property)
	if clause.Property == string(quota.PropertyFalseReject) {
		name = "false rejects"
	}
	name += ": " + format.Plain(clause.Formula)
	if clause.Source != "" {
		name += " (" + format.Plain(clause.Claimed()) + ")"
	}
	return name
}

// settlement is what became of admitted requests, if callers settle
// them.
func settlement(group []results.Summary) document.Section {
	if !slices.ContainsFunc(group, func(summary results.Summary) bool { return summary.Settled != nil }) {
		return nil
	}
	return figureTable("SETTLEMENT  of admitted requests, all rounds together", group,
		document.Figures(figures.Table("settlement")...),
		"refunds: after failed work and after deletions; abandoned: never settled; times are of all rounds that are valid: "+
			keptOf(group, valid))
}

// valid has the rounds behind the times of settlements in place of those that are kept.
func valid(summary *results.Summary) *results.Summary {
	return &results.Summary{TimingSummary: results.TimingSummary{Timed: summary.Rounds - summary.Invalid},
		Rounds: summary.Rounds}
}
