package results

import (
	"fmt"
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
			falseRejectsCell(s.FalseRejects, s.Admitted),
			driftCell(s),
			verdictCell(s.Verdict),
		}
	})
	out := append(wrap("CORRECTNESS  leak, worst window and drift in "+unit, tableWidth), g.lines(tableWidth)...)
	note := "rows: least leak first, then the fastest; leak: certain..possible, all rounds together; worst: of one subject and window; 0 of n crossings: in brackets " +
		"the largest share that is compatible with it (95 %)"
	if invalid {
		note += "; invalid: the audit struck every round, see below"
	}
	for _, l := range wrap(note, tableWidth-2) {
		out = append(out, "  "+l)
	}
	return out
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

func falseRejectsCell(f FalseRejects, admitted int64) string {
	if f.Possible <= f.Count {
		return formatPct(f.Pct)
	}
	most := pct(f.Possible, f.Possible+admitted)
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

// guaranteeLines renders what was promised and what came of it.
func guaranteeLines(group []Summary) []string {
	g := grid{columns: []column{
		labelColumn, {title: "property", left: true}, {title: "promises at most", left: true, flexible: true, minimum: 16},
		{title: "bound"}, {title: "measured"}, {title: "verdict", left: true},
	}}
	for i := range group {
		s := &group[i]
		for j, c := range s.Guarantee {
			label := plain(s.Label)
			if j > 0 {
				label = ""
			}
			g.add(label, plain(c.Property), plain(c.Formula), formatCount(c.Bound), formatRange(c.Certain, c.Possible), verdictCell(c.Verdict))
		}
	}
	if len(g.rows) == 0 {
		return nil
	}
	title := "DECLARED GUARANTEES  worst subject and window of any round, in " + plain(group[0].Params.Unit) + " beyond the limit or wrongly rejected"
	return append(wrap(title, tableWidth), g.lines(tableWidth)...)
}
