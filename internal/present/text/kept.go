package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
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
	var all grouped
	for i := range group {
		all.add(format.Plain(group[i].Label), Kept(loop(&group[i])))
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b reasoned) int { return len(b.names) - len(a.names) })
	var others []string
	for _, x := range all[1:] {
		others = append(others, strings.Join(x.names, ", ")+" "+x.reason)
	}
	if others == nil {
		return all[0].reason
	}
	return all[0].reason + " (" + strings.Join(others, "; ") + ")"
}
