package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/answer"
	"github.com/quotabench/quotabench/results/text/layout"
)

// column is a column of a table over strategies.
type column struct {
	layout.Column
	cell func(*results.Summary) string
	// more is set where a brief table leaves it out.
	more bool
}

// correctnessLines renders what was decided wrongly, a heading above each group of
// strategies. Unless it is to be whole it leaves out drift, and figures that others
// follow from.
func correctnessLines(page layout.Page, f results.File, group []results.Summary, whole bool) []string {
	failed := slices.ContainsFunc(group, func(s results.Summary) bool { return s.Counts() && s.Errors > 0 })
	label, trials := labelColumn, 24
	if failed && whole { // there is less room
		label.Minimum, trials = 12, 14
	}
	columns := []column{
		{layout.Column{Title: "admitted"}, func(s *results.Summary) string { return format.Pct(s.AdmittedPct()) }, true},
		{layout.Column{Title: "errors", Left: true, Optional: true, Flexible: true, Minimum: 11}, errorsCell, false},
		{layout.Column{Title: "leak"}, func(s *results.Summary) string { return leakCell(s.Leak.Leak) }, true},
		{layout.Column{Title: "leak, %\nof limit"}, func(s *results.Summary) string { return strings.TrimSuffix(format.Pct(s.Leak.PctOfLimit), " %") }, false},
		{layout.Column{Title: "worst\nwindow"}, func(s *results.Summary) string { return format.Count(s.Leak.WorstUnits) }, false},
		{layout.Column{Title: "trials\nthat leaked", Flexible: true, Minimum: trials}, func(s *results.Summary) string { return Trials(s.Leak.Leak) }, false},
		{layout.Column{Title: "false\nrejects"}, FalseRejects, false},
		{layout.Column{Title: "drift\nat rest", Left: true, Flexible: true, Minimum: 12}, Drift, true},
		{layout.Column{Title: "guarantee", Left: true, Flexible: true, Minimum: 9, Tone: guaranteeTone}, Guarantee, false},
	}
	columns = slices.DeleteFunc(columns, func(c column) bool { return c.more && !whole })
	g := layout.Grid{Columns: []layout.Column{label}}
	for _, c := range columns {
		g.Columns = append(g.Columns, c.Column)
	}
	in := answer.Group("")
	for i := range group {
		x := answer.Classify(&group[i], f.MaxBound)
		if x.Group != in {
			in = x.Group
			g.AddHeading(string(in), ToneOf(string(in)))
		}
		cells := []string{format.Plain(name(&x))}
		for j, c := range columns {
			switch {
			case x.Summary.Counts():
				cells = append(cells, c.cell(x.Summary))
			case j == 0:
				cells = append(cells, "invalid")
			default:
				cells = append(cells, "-")
			}
		}
		g.Add(cells...)
	}
	out := append(page.Title("CORRECTNESS  leak, worst window and drift in "+format.Plain(group[0].Params.Unit)), page.Table(&g)...)
	out = append(out, noteLines(page, neverGiven(group))...)
	if !whole {
		return out
	}
	return append(out, noteLines(page, strings.Join(correctnessNotes(group, failed, answer.ByTime(&f)), "; "))...)
}

// neverGiven is what wrong rejections kept from callers for good: the percentage counts a unit
// again for each attempt.
func neverGiven(group []results.Summary) string {
	var parts []string
	for i := range group {
		if n := group[i].FalseRejects.NeverGiven; n != nil && *n > 0 {
			parts = append(parts, group[i].Label+" "+format.Count(*n))
		}
	}
	if parts == nil {
		return ""
	}
	return "room never given, in " + format.Plain(group[0].Params.Unit) + ": " + strings.Join(parts, ", ")
}

// correctnessNotes explain the columns.
func correctnessNotes(group []results.Summary, failed, byTime bool) []string {
	falseRejects := "false rejects: of valid requests, which had to be admitted"
	if slices.ContainsFunc(group, func(s results.Summary) bool { return s.FalseRejects.Possible > s.FalseRejects.Count }) {
		falseRejects += ", certain..possible, or certain alone where one order of events explains all others"
	}
	limit := "the limit"
	if len(group[0].Params.LimitChanges) > 0 {
		limit = "the first limit"
	}
	order := "rows: in each group the fastest first; of those that are not shown to be slower by 25 %, first who survives more faults, " +
		"then who sends fewer commands"
	if !byTime {
		order = "rows: in each group first who survives more faults, then who sends fewer commands"
	}
	order += "; those that do not enforce by their leak"
	parts := []string{order, "leak: certain..possible, all rounds together, in percent of " + limit + " times the trials",
		"worst window: leak of one subject and window", "0 of n trials: in brackets the largest share that is compatible with it (95 %)", falseRejects}
	if failed {
		parts = append(parts, "errors: requests without a decision, of all; time-outs and contention are what a strategy does, those of the store and others make a run invalid")
	}
	if slices.ContainsFunc(group, func(s results.Summary) bool { return !s.Counts() }) {
		parts = append(parts, "invalid: the audit discarded every round, see MEASUREMENT VALIDITY")
	}
	return parts
}

// Guarantee says what was declared on the leak, with its bound, and what came of it. A
// leak never stands beside a mere "kept".
func Guarantee(s *results.Summary) string {
	verdict, bound := s.Verdict, int64(-1)
	for _, c := range s.Guarantee {
		if c.Property == results.LeakProperty && (bound < 0 || c.Bound < bound) {
			bound = c.Bound
		}
	}
	switch {
	case verdict == results.Broken:
		return "BROKEN"
	case bound < 0 && len(s.NotPromised) > 0:
		return "not promised under " + strings.Join(s.NotPromised, ", ")
	case bound < 0 || bound == quota.Unbounded:
		return results.NoPromise
	case bound == 0 && verdict == results.Kept && s.Leak.WorstUnits > 0:
		return "kept by its instances' clocks alone"
	case bound == 0:
		return "no leak: " + verdict
	case verdict == results.Kept:
		return "within " + format.Count(bound) + " per window"
	default:
		return "at most " + format.Count(bound) + " per window: " + verdict
	}
}

// rollingLines renders what tumbling windows let through around their ends, where
// one ended in mid-run.
func rollingLines(page layout.Page, group []results.Summary) []string {
	if !slices.ContainsFunc(group, func(s results.Summary) bool { return s.Rolling != nil }) {
		return nil
	}
	g := layout.Grid{Columns: []layout.Column{labelColumn, {Title: "worst rolling\nwindow"}, {Title: "admitted\nin it"}, {Title: "leak"}}}
	rowsOf(&g, group, func(s *results.Summary) []string {
		r := s.Rolling
		if r == nil {
			return []string{"-", "-", "-"}
		}
		return []string{format.Digits(r.Multiple) + " x limit", format.Units(r.WorstUnits, format.Plain(s.Params.Unit)), format.Range(r.Units, r.Possible)}
	})
	out := append(page.Title("ROLLING  the same decisions, judged by every span as long as a window instead of the policy's own windows"), page.Table(&g)...)
	return append(out, noteLines(page, "leak: certain..possible, of disjoint spans, all rounds together; a policy of tumbling windows allows 2.00 x limit around their ends")...)
}

// errorsCell is the share of requests that ended in an error of each kind; empty where
// none did.
func errorsCell(s *results.Summary) string {
	if s.Errors == 0 {
		return ""
	}
	share := func(n int64) string { return format.Pct(results.Percent(n, s.Issued)) }
	k := s.ErrorKinds
	if k == nil { // of a record that does not tell them apart
		return share(s.Errors)
	}
	var out []string
	for _, kind := range []quota.ErrorKind{quota.ErrorContention, quota.ErrorTimeout, quota.ErrorStore, quota.ErrorOther} {
		if n := *k.Of(kind); n > 0 {
			out = append(out, share(n)+" "+string(kind))
		}
	}
	cell := strings.Join(out, ",\n")
	if answer.FailsAlways(s) {
		cell += ":\n" + errorName(s.FirstError)
	}
	return cell
}

// errorName is the code that an error of Redis begins with, e.g. CROSSSLOT, or the beginning
// of another error.
func errorName(text string) string {
	const most = 24
	code, _, _ := strings.Cut(text, " ")
	if len(code) > 2 && code == strings.ToUpper(code) && !strings.ContainsAny(code, ":0123456789") {
		return code
	}
	if r := []rune(text); len(r) > most {
		return strings.TrimSpace(string(r[:most-1])) + "…"
	}
	return text
}

// leakCell puts a wide range on two lines.
func leakCell(l results.Leak) string {
	text := format.Range(l.Units, l.Possible)
	if from, to, ok := strings.Cut(text, ".."); ok && len(text) > 12 {
		return from + "..\n" + to
	}
	return text
}

// Trials says how many trials leaked. None of n is not proof of none.
func Trials(l results.Leak) string {
	switch {
	case l.Trials == 0 && l.LeakedTrials == 0:
		return "no trial"
	case l.Trials == 0:
		return format.Count(l.LeakedTrials)
	case l.LeakedTrials == 0:
		return fmt.Sprintf("0 of %s (≤ %s)", format.Count(l.Trials), format.Pct(100*results.RateBound(l.Trials)))
	default:
		return fmt.Sprintf("%s of %s (%s)", format.Count(l.LeakedTrials), format.Count(l.Trials), format.Pct(results.Percent(l.LeakedTrials, l.Trials)))
	}
}

// FalseRejects are those of valid requests, certain..possible, or one figure where the
// possible ones say no more.
func FalseRejects(s *results.Summary) string {
	f := s.FalseRejects
	if f.Possible <= f.Count {
		return format.Pct(f.PctOfValid)
	}
	most := results.Percent(f.Possible, f.Possible+s.Admitted-s.Leak.Requests)
	return strings.TrimSuffix(format.Pct(f.PctOfValid), " %") + ".." + format.Pct(max(most, f.PctOfValid))
}

// Drift shows the worst tier at rest, and on a line of its own what background jobs
// make of it.
func Drift(s *results.Summary) string {
	rest, ok := s.AtRest()
	after, jobs := s.AfterJobs()
	switch {
	case !ok && !jobs:
		return "no counter"
	case !ok:
		return tierText(after) + " after jobs"
	case jobs && after.Units != rest.Units:
		return tierText(rest) + "\n" + format.Signed(after.Units) + " after jobs"
	default:
		return tierText(rest)
	}
}

func tierText(t results.TierDrift) string {
	if t.Units == 0 {
		return "0"
	}
	text := format.Signed(t.Units) + " " + format.Plain(t.Tier)
	if t.Width > 0 {
		text += " (width " + format.Count(t.Width) + ")"
	}
	return text
}

// Verdict says whether what was declared was kept; "none" where nothing was.
func Verdict(verdict string) string {
	switch verdict {
	case "":
		return "none"
	case results.Broken:
		return "BROKEN"
	default:
		return verdict
	}
}
