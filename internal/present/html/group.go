package html

import (
	"slices"

	"github.com/quotabench/quotabench/internal/answer"
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
