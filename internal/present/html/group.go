package html

import (
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text"
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
	answer.Loose: {"bounded", "▽"}, answer.Fails: {"fails", "▲"}, answer.Unusable: {"unusable", "✕"},
	answer.Baseline: {"baseline", "○"},
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
	text.Decision
	Columns []string
	Rows    []verdictRow
}

// verdictRow is a strategy, with the reason for its verdict and its conditions, or a heading of rows.
type verdictRow struct {
	Heading                    string
	Label, Panel, Verdict, Why string
	Group                      groupView
	Cells                      []string
}

// answered sums up, with a link to the panel of each strategy that has one.
func answered(d *text.Decision, panels map[string]string) *answerView {
	out := &answerView{Decision: *d}
	for _, c := range d.Columns {
		out.Columns = append(out.Columns, strings.ReplaceAll(c.Title, "\n", " "))
	}
	for _, r := range d.Rows {
		row := verdictRow{Heading: r.Heading}
		if r.Strategy != nil {
			why := format.Join("; ", append(append([]string{r.Reason}, r.Conditions...), r.Broken)...)
			row = verdictRow{"", r.Cells[1], panels[r.Label], r.Cells[0], why, groupOf(r.Group), r.Cells[2:]}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
