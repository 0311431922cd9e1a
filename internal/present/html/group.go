package html

import (
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/answer"
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
	Groups   []answerGroup
	Cheapest *answerLine
	// First is what the cheapest one is called: "Cheapest", or "First" if timings do not put
	// it there. Why says what it costs.
	First, Why string
	Untested   []answer.Untested
}

// answerGroup are the strategies of one group.
type answerGroup struct {
	Group groupView
	Lines []answerLine
}

// answerLine is a strategy with the reason for its group, and its conditions.
type answerLine struct {
	Label, Panel, Reason string
	PerProcess           bool
}

// answered sums the setting up.
func answered(a *answer.Setting, v *settingView) *answerView {
	out := &answerView{Untested: a.Untested, First: "Cheapest"}
	lines := map[string]answerLine{}
	for i := range v.Rows {
		r := &v.Rows[i]
		l := answerLine{r.Label, r.Panel, strings.Join(append([]string{r.Reason}, a.Strategies[i].Conditions...), "; "), r.PerProcess}
		lines[r.Label] = l
		if n := len(out.Groups); n == 0 || out.Groups[n-1].Group != r.Group {
			out.Groups = append(out.Groups, answerGroup{Group: r.Group})
		}
		g := &out.Groups[len(out.Groups)-1]
		g.Lines = append(g.Lines, l)
	}
	best := a.Cheapest()
	if best == nil {
		return out
	}
	s := best.Summary
	l := lines[labelOf(s)]
	out.Cheapest = &l
	out.First, out.Why = text.First(v.simulated, a, best)
	return out
}
