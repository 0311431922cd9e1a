package text

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// answerWidth is how wide the answer is at most, in cells: it is prose, and read in
// mails too.
const answerWidth = 100

// answerLines renders what a record says for somebody who must choose: a few lines for
// each setting.
func answerLines(page layout.Page, f results.File) []string {
	a := answer.Of(f)
	var out []string
	for i := range a.Settings {
		if len(a.Settings[i].In(answer.Baseline)) == len(a.Settings[i].Strategies) {
			continue // there is nothing to choose from
		}
		if len(out) > 0 {
			out = append(out, "")
		}
		out = append(out, settingAnswer(page, f.Kind == results.Simulated, &a.Settings[i])...)
	}
	return out
}

func settingAnswer(page layout.Page, simulated bool, s *answer.Setting) []string {
	width := min(page.Cells(), answerWidth)
	p := s.Strategies[0].Summary.Params
	mode := ""
	if simulated {
		mode = "simulated"
	}
	narrow := page
	narrow.Width = width
	out := narrow.Title(format.Plain("ANSWER  " + format.Join(" · ",
		Policy(s.Strategies[0].Summary),
		s.Strategies[0].Summary.Workload, format.Plural(int64(p.Instances), "instance", "instances"),
		format.Plural(int64(p.Workers), "worker", "workers"), mode)))
	line := func(label, text string) {
		if text != "" {
			out = append(out, layout.Paragraph("  "+layout.Pad(label, 20), format.Plain(text), width)...)
		}
	}
	cheapest := s.Cheapest()
	if cheapest == nil {
		line("Enforce the limit", "none of those that ran")
	} else {
		line("Enforce the limit", strings.Join(names(s.In(answer.Enforces)), ", "))
		first, why := First(simulated, s, cheapest)
		line(first+" of them", cheapest.Label+": "+why)
	}
	var bounded, undecided, conditions, over, reject, other []string
	for _, x := range s.Strategies {
		if x.Conditions != nil {
			conditions = append(conditions, name(&x)+": "+strings.Join(x.Conditions, "; "))
		}
		switch {
		case x.Group == answer.Bounded:
			bounded = append(bounded, name(&x)+": "+x.Reason)
		case x.Group == answer.Undecided:
			undecided = append(undecided, name(&x)+": "+x.Reason)
		case x.Leaks():
			over = append(over, name(&x)+" "+format.Pct(x.Judged.Leak.PctOfLimit))
		case x.Rejects():
			reject = append(reject, name(&x)+" "+format.Pct(x.Judged.FalseRejects.PctOfValid))
		case x.Group == answer.Fails, x.Group == answer.Unusable:
			other = append(other, name(&x)+": "+x.Reason)
		}
	}
	line("With a bound", strings.Join(bounded, ". "))
	line("Conditions", strings.Join(conditions, ". "))
	line("Undecided", strings.Join(undecided, ". "))
	line("Over-admit", listed(over, " of the limit"))
	line("Reject wrongly", listed(reject, " of valid requests"))
	line("Cannot be used", strings.Join(other, ". "))
	return append(out, untestedLines(s.Untested, width)...)
}

// untestedLines put each command on a line of its own, whole: it is there to be copied.
func untestedLines(untested []answer.Untested, width int) []string {
	var what, commands []string
	for _, u := range untested {
		what = append(what, u.What)
		switch {
		case u.Command != "":
			commands = append(commands, "    "+format.Plain(u.Command))
		case u.Add != "":
			commands = append(commands, "    this command again, with "+format.Plain(u.Add))
		}
	}
	if len(what) == 0 {
		return nil
	}
	text := strings.Join(what, "; ")
	if len(commands) > 0 {
		text += ". To test it:"
	}
	return append(layout.Paragraph("  "+layout.Pad("Not tested", 20), text, width), commands...)
}

func listed(all []string, of string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, ", ") + of
}

func names(all []answer.Strategy) []string {
	var out []string
	for i := range all {
		out = append(out, name(&all[i]))
	}
	return out
}

func name(s *answer.Strategy) string {
	if s.PerProcess {
		return s.Label + " (per process)"
	}
	if s.Summary.Outside && s.Group == answer.Enforces { // where no reason says so
		return s.Label + " (measured from outside)"
	}
	return s.Label
}

// First says what a decision of the first strategy that enforces the limit costs, and why
// it is the first. It is "Cheapest" if its timings put it there, else "First".
func First(simulated bool, s *answer.Setting, x *answer.Strategy) (name, why string) {
	cost := Cost(simulated, x.Summary)
	const by = "; chosen by the faults that its promise survives and by commands; "
	switch {
	case !s.ByTime:
		return "First", cost + by + "timings on stand-ins put nothing in order"
	case x.Summary.Latency().P99.Status == results.NotMeasurable:
		return "First", cost + by + "its timings are not measurable here"
	}
	if tied := listedTies(s.Tied(x)); tied != "" {
		cost += "; not shown to be slower: " + tied
	}
	return "Cheapest", cost
}

// listedTies names a few. The table above has them all, in their order.
func listedTies(tied []*answer.Strategy) string {
	const most = 4
	var names []string
	for _, x := range tied {
		names = append(names, name(x))
	}
	n := len(names)
	if n > most+1 {
		names = append(names[:most], fmt.Sprintf("%d others", n-most))
	}
	if n = len(names); n < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}

// Cost says what a decision costs: what callers wait for, and what it sends.
func Cost(simulated bool, s *results.Summary) string {
	r, p99 := s.AtRate(), s.Latency().P99
	where := fmt.Sprintf("with %s that never pause", format.Plural(int64(r.Params.Workers), "caller", "callers"))
	if r.Params.Loop == results.OpenLoop && r.Params.RatePerS > 0 {
		where = "at " + format.Digits(r.Params.RatePerS) + " requests/s"
	}
	if simulated {
		where += ", modelled"
	}
	text := "p99 " + format.NS(p99.Value) + " " + where
	switch {
	case r.Saturated > 0:
		text = "cannot keep up " + where
	case p99.Status == results.NotMeasurable:
		text = "p99 not measurable here"
	case !p99.Shown():
		text = "p99 not known"
	case 2*p99.Waited > p99.Rounds:
		text += " (part of it may be waiting for a core)"
	}
	return format.Join(", ", text, perDecision(s.Cost.Commands, "command", "commands"),
		perDecision(s.Cost.SQL+s.Cost.ModelSQL, "SQL statement", "SQL statements")) + " per decision"
}

func perDecision(x float64, one, many string) string {
	switch text := format.TrimZeros(format.Per(x)); text {
	case "0":
		return ""
	case "1":
		return "1 " + one
	default:
		return text + " " + many
	}
}
