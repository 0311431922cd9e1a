package text

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/groups"
	"github.com/quotabench/quotabench/results"
)

// Kept says how many rounds are behind the timings of a strategy in one loop, of those that
// were run.
func Kept(s *results.Summary) string { return fmt.Sprintf("%d of %d", s.Timed, s.Rounds) }

// KeptRounds says the same of all strategies of one table, in both loops if there are two.
func KeptRounds(group []results.Summary) string {
	first, rate := keptOf(group, itself), keptOf(group, (*results.Summary).AtRate)
	if first == rate {
		return "rounds kept: " + first
	}
	return "rounds kept: " + rate + " in open loop, " + first + " in closed loop"
}

func itself(s *results.Summary) *results.Summary { return s }

// keptOf is what most strategies have in common, and the others by name.
func keptOf(group []results.Summary, loop func(*results.Summary) *results.Summary) string {
	var who groups.By[string, string]
	for i := range group {
		who.Add(Kept(loop(&group[i])), format.Plain(group[i].Label))
	}
	texts := commonFirst(&who, " ")
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return texts[0] + " (" + strings.Join(texts[1:], "; ") + ")"
}
