package results

import (
	"fmt"
	"slices"
	"strings"
)

// finding is what the audit says of one or more strategies.
type finding struct {
	Reason
	who []concern
	// differs is set where the details are not the same for all of them.
	differs bool
}

// concern is a strategy with a finding in some of its rounds.
type concern struct {
	label     string
	n, rounds int
}

// findingLines lists what the audit found, the gravest first. Strategies that
// share a finding share its line.
func findingLines(summaries []Summary) []string {
	var all []finding
	for i := range summaries {
		s := &summaries[i]
		for _, r := range slices.Concat(s.Audit.Reasons, s.remarks()) {
			j := slices.IndexFunc(all, func(x finding) bool { return x.Code == r.Code && x.Strikes == r.Strikes })
			if j < 0 {
				j = len(all)
				all = append(all, finding{Reason: r})
			}
			all[j].differs = all[j].differs || all[j].Detail != r.Detail
			n := s.Rounds
			if k, ok := s.Occurrences[r.Code]; ok {
				n = k
			}
			all[j].who = append(all[j].who, concern{s.Label, n, s.Rounds})
		}
	}
	if len(all) == 0 {
		return nil
	}
	grave := map[string]int{StrikesCorrectness: 0, StrikesTimings: 1, StrikesResponse: 2, StrikesNote: 3}
	slices.SortStableFunc(all, func(a, b finding) int { return grave[a.Strikes] - grave[b.Strikes] })
	heads := map[string]string{StrikesCorrectness: "INVALID ", StrikesTimings: "TIMINGS ", StrikesResponse: "RESPONSE ", StrikesNote: "note    "}
	out := []string{"FINDINGS OF THE AUDIT"}
	for _, x := range all {
		detail := plain(x.Detail)
		if x.differs {
			detail = "e.g. " + detail
		}
		text := fmt.Sprintf("%s: %s [%s]", plain(x.Code), detail, plain(concerned(x.who, len(summaries))))
		out = append(out, paragraph("  "+heads[x.Strikes], text, tableWidth)...)
	}
	return out
}

// remarks are findings that follow from a strategy's figures. What the audit
// says itself is not said twice.
func (s *Summary) remarks() []Reason {
	var out []Reason
	said := func(codes ...string) bool {
		return slices.ContainsFunc(s.Audit.Reasons, func(r Reason) bool { return slices.Contains(codes, r.Code) })
	}
	if s.FirstError != "" && !said("errors", "prescribed-errors") {
		out = append(out, Reason{"errors", StrikesNote,
			fmt.Sprintf("%s, the first: %s", plural(s.Errors, "request failed", "requests failed"), s.FirstError)})
	}
	if s.Degraded > 0 {
		out = append(out, Reason{"degraded", StrikesNote, formatPct(s.DegradedPct()) + " of decisions were made without the store"})
	}
	return out
}

// concerned names strategies, or says that it is all of them.
func concerned(who []concern, strategies int) string {
	if len(who) < strategies || strategies == 1 {
		var names []string
		for _, c := range who {
			if c.n < c.rounds {
				c.label += fmt.Sprintf(" (%d of %s)", c.n, plural(int64(c.rounds), "round", "rounds"))
			}
			names = append(names, c.label)
		}
		return strings.Join(names, ", ")
	}
	byCount := func(a, b concern) int { return a.n - b.n }
	byRounds := func(a, b concern) int { return a.rounds - b.rounds }
	least, most := slices.MinFunc(who, byCount).n, slices.MaxFunc(who, byCount).n
	rounds := slices.MaxFunc(who, byRounds).rounds
	switch {
	case !slices.ContainsFunc(who, func(c concern) bool { return c.n < c.rounds }):
		return "all strategies"
	case least == most:
		return fmt.Sprintf("all strategies, %d of %s", most, plural(int64(rounds), "round", "rounds"))
	default:
		return fmt.Sprintf("all strategies, %d to %d of %s", least, most, plural(int64(rounds), "round", "rounds"))
	}
}
