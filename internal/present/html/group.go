package html

import (
	"slices"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text"
	"github.com/quotabench/quotabench/results"
)

// groupView is how a group is shown: by a word, a shape and a colour.
type groupView struct {
	Name  string
	Class string
	Shape string
	// Order among groups, the best first.
	Order int
}

// shapes and classes of the groups, for readers who do not tell colours apart.
var shapes = map[answer.Group][2]string{
	answer.Enforces: {"enforces", "●"}, answer.Bounded: {"bounded", "◆"}, answer.Undecided: {"bounded", "◇"},
	answer.Fails: {"fails", "▲"}, answer.Unusable: {"unusable", "✕"}, answer.Baseline: {"baseline", "○"},
}

func groupOf(g answer.Group) groupView {
	return groupView{Name: string(g), Class: shapes[g][0], Shape: shapes[g][1], Order: slices.Index(answer.Groups(), g)}
}

// legend are all groups in their order.
func legend() (out []groupView) {
	for _, g := range answer.Groups() {
		out = append(out, groupOf(g))
	}
	return out
}

// answerView is what a setting says to those who must choose.
type answerView struct {
	// Advice is the answer in sentences.
	Advice []string
	// Columns after the verdict and the strategy, and a row for each strategy, as the terminal
	// has them.
	Columns  []string
	Rows     []verdictRow
	Notes    []string
	Untested []answer.Untested
}

// verdictRow is a strategy, with the reason for its verdict and its conditions.
type verdictRow struct {
	Label, Panel, Verdict, Why string
	Group                      groupView
	Cells                      []string
}

// answered sums the setting up.
func answered(f *results.File, a *answer.Setting, v *settingView) *answerView {
	columns, rows, notes := text.Verdicts(f, a)
	out := &answerView{Advice: text.Advice(v.simulated, a), Columns: columns[2:], Untested: a.Untested, Notes: notes}
	for _, r := range rows {
		i := slices.IndexFunc(v.Rows, func(d decisionRow) bool { return d.Label == r.Label })
		why := format.Join("; ", append(append([]string{r.Reason}, r.Conditions...), r.Broken)...)
		out.Rows = append(out.Rows, verdictRow{r.Label, v.Rows[i].Panel, r.Cells[0], why, groupOf(r.Group), r.Cells[2:]})
	}
	return out
}
