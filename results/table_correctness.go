package results

import (
	"fmt"
	"slices"
	"strings"
)

// correctnessLines renders what was decided wrongly.
func correctnessLines(group []Summary) []string {
	unit := plain(group[0].Params.Unit)
	g := grid{columns: []column{
		labelColumn, {title: "admitted"}, {title: "leak"}, {title: "% of\nlimit"}, {title: "worst\nwindow"},
		{title: "crossings\nthat leaked", flexible: true, minimum: 14}, {title: "false\nrejects"}, {title: "drift\nat rest", left: true, flexible: true, minimum: 12},
		{title: "guarantee", left: true},
	}}
	invalid := false
	rowsOf(&g, group, func(s *Summary) []string {
		if !s.Counts() {
			invalid = true
			return []string{"invalid", "-", "-", "-", "-", "-", "-", "-"}
		}
		return []string{
			formatPct(s.AdmittedPct()),
			leakCell(s.Leak.Leak),
			strings.TrimSuffix(formatPct(s.Leak.Pct), " %"),
			formatCount(s.Leak.WorstUnits),
			crossingsCell(s.Leak.Leak),
			falseRejectsCell(s),
			driftCell(s),
			verdictCell(s.Verdict),
		}
	})
	out := append(wrap("CORRECTNESS  leak, worst window and drift in "+unit, tableWidth), g.lines(tableWidth)...)
	parts := []string{"rows: least leak first, then the fastest", "leak: certain..possible, all rounds together", "worst window: leak of one subject and window",
		"0 of n crossings: in brackets the largest share that is compatible with it (95 %)"}
	if slices.ContainsFunc(group, func(s Summary) bool { return s.FalseRejects.Possible > s.FalseRejects.Count }) {
		parts = append(parts, "false rejects: certain..possible, or certain alone where one order of events explains all others")
	}
	if invalid {
		parts = append(parts, "invalid: the audit struck every round, see below")
	}
	return append(out, noteLines(strings.Join(parts, "; "))...)
}

// rollingLines renders what tumbling windows let through around their ends, where
// one ended in mid-run.
func rollingLines(group []Summary) []string {
	if !slices.ContainsFunc(group, func(s Summary) bool { return s.Rolling != nil }) {
		return nil
	}
	g := grid{columns: []column{labelColumn, {title: "worst rolling\nwindow"}, {title: "admitted\nin it"}, {title: "leak"}}}
	rowsOf(&g, group, func(s *Summary) []string {
		r := s.Rolling
		if r == nil {
			return []string{"-", "-", "-"}
		}
		return []string{digits3(r.Multiple) + " x limit", units(r.WorstUnits, plain(s.Params.Unit)), formatRange(r.Units, r.Possible)}
	})
	out := append([]string{"ROLLING  the same decisions, judged by every span as long as a window instead of the policy's own windows"}, g.lines(tableWidth)...)
	return append(out, noteLines("leak: certain..possible, of disjoint spans, all rounds together; a policy of tumbling windows allows 2.00 x limit around their ends")...)
}

// leakCell puts a wide range on two lines.
func leakCell(l Leak) string {
	text := formatRange(l.Units, l.Possible)
	if from, to, ok := strings.Cut(text, ".."); ok && len(text) > 12 {
		return from + "..\n" + to
	}
	return text
}

// crossingsCell says how many crossings leaked. None of n is not proof of none.
func crossingsCell(l Leak) string {
	switch {
	case l.Crossings == 0 && l.Violations == 0:
		return "none crossed"
	case l.Crossings == 0:
		return formatCount(l.Violations)
	case l.Violations == 0:
		return fmt.Sprintf("0 of %s (≤ %s)", formatCount(l.Crossings), formatPct(100*RateBound(l.Crossings)))
	default:
		return fmt.Sprintf("%s of %s (%s)", formatCount(l.Violations), formatCount(l.Crossings), formatPct(pct(l.Violations, l.Crossings)))
	}
}

// falseRejectsCell is one figure where the possible ones say no more.
func falseRejectsCell(s *Summary) string {
	f := s.FalseRejects
	if f.Possible <= f.Count {
		return formatPct(f.Pct)
	}
	most := pct(f.Possible, f.Possible+s.Admitted-s.Leak.Requests)
	return strings.TrimSuffix(formatPct(f.Pct), " %") + ".." + formatPct(max(most, f.Pct))
}

// driftCell shows the worst tier at rest, and what background jobs make of it.
func driftCell(s *Summary) string {
	rest, ok := s.AtRest()
	after, jobs := s.AfterJobs()
	switch {
	case !ok && !jobs:
		return "no counter"
	case !ok:
		return tierText(after) + " after jobs"
	case jobs && after.Units != rest.Units:
		return tierText(rest) + "\n" + formatSigned(after.Units) + " after jobs"
	default:
		return tierText(rest)
	}
}

func tierText(t TierDrift) string {
	if t.Units == 0 {
		return "0"
	}
	text := formatSigned(t.Units) + " " + plain(t.Tier)
	if t.Width > 0 {
		text += " (width " + formatCount(t.Width) + ")"
	}
	return text
}

func verdictCell(verdict string) string {
	switch verdict {
	case "":
		return "none"
	case Violated:
		return "VIOLATED"
	default:
		return verdict
	}
}
