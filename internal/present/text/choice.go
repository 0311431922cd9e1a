package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Choice writes which strategy to use for a policy and what rules out the others; in whole with the evidence and the
// commands that show it again.
func Choice(w io.Writer, page layout.Page, c *results.Choice, whole bool) error {
	d := decideChoice(c)
	return write(w, func(section func([]string)) {
		section(d.adviceLines(page))
		section(d.tableLines(page))
		section(d.untestedLines(page))
		if whole {
			section(candidateLines(page, slices.Concat(c.Candidates, c.Others)))
			section(ruledOutLines(page, c.RuledOut))
			section(stageLines(page, c))
		}
	})
}

// decideChoice has a row for each strategy that fits, and for each that was tried and does not.
func decideChoice(c *results.Choice) Decision {
	d := Decision{Advice: choiceAdvice(c), Title: questionText(&c.Question), Notes: c.Notes[:min(len(c.Notes), 2)]}
	fit := slices.Concat(c.Candidates, c.Others)
	p99 := func(x *results.Candidate) int64 { return cmp.Or(x.ModelledP99, x.P99) }
	var all []float64
	for i := range fit {
		all = append(all, float64(p99(&fit[i])))
	}
	title, div := p99Title(c.Question.Regions > 1, all)
	d.Columns = []layout.Column{
		{Title: "verdict", Left: true, Tone: ToneOf}, {Title: "strategy", Left: true, Flexible: true, Minimum: 18},
		{Title: "shown by", Left: true}, {Title: "what was shown", Left: true, Flexible: true, Minimum: 20},
		{Title: title}, {Title: "round trips per decision"},
	}
	add := func(g answer.Group, name string, e *results.Evidence, figures ...string) {
		what := e.Text
		if _, after, ok := strings.Cut(what, ": "); ok {
			what = after
		}
		what, _, _ = strings.Cut(what, ", ")
		cells := []string{g.Verdict(), format.Plain(name), shownBy[e.Kind], format.Plain(what)}
		d.Rows = append(d.Rows, Row{Cells: append(cells, figures...)})
	}
	for i := range fit {
		x := &fit[i]
		g, time := answer.Enforces, "-"
		if x.Bounded {
			g = answer.Bounded
		}
		if ns := p99(x); ns > 0 {
			time = format.Digits(float64(ns) / div)
		}
		best := new(results.Evidence) // the first of runs
		for j := range x.Evidence {
			if best.Kind != results.EvidenceMeasured {
				best = &x.Evidence[j]
			}
		}
		add(g, x.Strategy, best, time, format.TrimZeros(format.Digits(x.RoundTrips)))
	}
	for i := range c.RuledOut {
		if r := &c.RuledOut[i]; r.Reason.Kind != results.EvidenceDeclared {
			add(answer.Fails, r.Strategy, &r.Reason, "-", "-")
		}
	}
	if slices.ContainsFunc(fit, func(x results.Candidate) bool { return p99(&x) == 0 }) && len(d.Notes) < 2 {
		d.Notes = append(slices.Clone(d.Notes), "a p99 is not shown if it is not measurable here")
	}
	var untested grouped
	command := ""
	for _, u := range c.NotTested {
		untested.Add(u.Reason, u.Strategy)
		command = cmp.Or(command, u.Command)
	}
	if len(untested.Keys) > 0 {
		d.Untested = []answer.Untested{{What: untested.text(), Command: command}}
	}
	return d
}

var shownBy = map[results.EvidenceKind]string{
	results.EvidenceDeclared: "declaration", results.EvidenceSchedule: "search",
	results.EvidenceMeasured: "run", results.EvidenceSimulated: "simulation",
}

// choiceAdvice says which strategy to use and why, and what it was chosen over.
func choiceAdvice(c *results.Choice) (out []string) {
	if c.Interrupted {
		out = []string{"Interrupted: this is what was known by then."}
	}
	var rest grouped
	fit := slices.Concat(c.Candidates, c.Others)
	for i := range fit {
		if i > 0 {
			rest.Add("lower in rank", fit[i].Strategy)
		}
	}
	for _, r := range c.RuledOut {
		rest.Add("ruled out by a "+shownBy[r.Reason.Kind], r.Strategy)
	}
	if len(fit) == 0 {
		none := "No strategy that could be tested fits"
		if n := len(c.NotTested); n > 0 {
			none += fmt.Sprintf(", and %d could not be tested (reasons below)", n)
		}
		out = append(out, none+".")
		if len(rest.Keys) > 0 {
			out = append(out, "These were tried: "+rest.text()+".")
		}
		return out
	}
	best := &fit[0]
	var shown []string
	for _, e := range best.Evidence {
		shown = append(shown, shownBy[e.Kind])
	}
	out = append(out, fmt.Sprintf("Use %s: its %s show nothing against it. It needs %s.", best.Strategy, listed(slices.Compact(shown)),
		format.Join("; ", cmp.Or(strings.Join(best.Stores, ", "), "no store"), best.Deployment)))
	if len(rest.Keys) > 0 {
		out = append(out, "It was chosen over "+rest.text()+".")
	}
	if len(best.Caveats) > 0 {
		out = append(out, "Not shown of "+best.Strategy+": "+strings.Join(best.Caveats, "; ")+".")
	}
	return out
}

// questionText is what was asked, in a sentence.
func questionText(q *results.Question) string {
	parts := []string{q.Policy, format.Plural(int64(q.Instances), "instance", "instances")}
	if q.Regions > 1 {
		parts[1] += fmt.Sprintf(" in each of %d regions", q.Regions)
	}
	parts = append(parts, fmt.Sprintf("%s requests per second for %s", format.Count(int64(q.RatePerS)),
		format.Plural(q.Subjects, "subject", "subjects")))
	if q.ToleratedLeak == 0 {
		parts = append(parts, "no leak tolerated")
	} else {
		parts = append(parts, fmt.Sprintf("a leak of %s tolerated", format.Units(q.ToleratedLeak, q.Unit)))
	}
	if q.P99 > 0 {
		parts = append(parts, fmt.Sprintf("p99 of at most %v", time.Duration(q.P99)))
	}
	if q.Skew > 0 {
		parts = append(parts, fmt.Sprintf("clocks %v apart", time.Duration(q.Skew)))
	}
	if text := map[string]string{
		"open": "admits while Redis is away", "closed": "holds the limit while Redis is away",
		"survive": "decides and holds the limit while Redis is away",
	}[q.Outage]; text != "" {
		parts = append(parts, text)
	}
	if q.Settles {
		parts = append(parts, "what was given is committed, refunded or abandoned")
	}
	return strings.Join(parts, "; ")
}

func candidateLines(page layout.Page, all []results.Candidate) (out []string) {
	const indent = "   "
	for i := range all {
		c := &all[i]
		out = append(out, page.Paragraph(fmt.Sprintf("%d. ", i+1), format.Plain(c.Strategy+": "+c.Doc))...)
		out = append(out, page.Paragraph(indent, format.Plain(format.Join("; ", c.Deployment, costOf(c))))...)
		for j := range c.Evidence {
			e := &c.Evidence[j]
			out = append(out, page.Paragraph(indent+"+ ", format.Plain(shownBy[e.Kind]+": "+e.Text))...)
			out = append(out, commandLines(indent+"  ", e.Command)...)
		}
		for _, caveat := range c.Caveats {
			out = append(out, page.Paragraph(indent+"! ", format.Plain(caveat))...)
		}
	}
	return out
}

// commandLines show one on a line of its own, unbroken, to be copied.
func commandLines(indent, command string) []string {
	if command == "" {
		return nil
	}
	return []string{indent + format.Plain(command)}
}

// costOf is what a candidate costs, in one line.
func costOf(c *results.Candidate) string {
	var parts []string
	if c.RatePerS > 0 {
		p99 := timing("p99", format.NS(float64(c.P99)), c.P99Counts, c.P99Rounds)
		parts = append(parts, p99+" at "+format.Count(int64(c.RatePerS))+" requests per second")
	}
	if c.ModelledP99 > 0 {
		parts = append(parts, "p99 "+format.NS(float64(c.ModelledP99))+" over the regions, modelled")
	}
	return strings.Join(append(parts,
		timing("decisions per second under contention:", format.Count(int64(c.ThroughputPerS)), c.ThroughputPerS > 0, c.ThroughputRounds),
		format.Digits(c.RoundTrips)+" round trips per decision"), "; ")
}

// timing is a figure with the rounds behind it.
func timing(name, value string, counts bool, r results.Rounds) string {
	if !counts {
		value = "not measurable here"
	}
	return fmt.Sprintf("%s %s (%d of %s)", name, value, r.Kept, format.Plural(int64(r.Run), "round", "rounds"))
}

// ruledOutLines have the first reason that was found against each. Strategies that declare the same share a line.
func ruledOutLines(page layout.Page, all []results.RuledOut) []string {
	if len(all) == 0 {
		return nil
	}
	out := page.Title("RULED OUT  each by the first reason that was found")
	var declared grouped
	for i := range all {
		r := &all[i]
		if r.Reason.Kind == results.EvidenceDeclared {
			declared.Add(r.Reason.Text, r.Strategy)
			continue
		}
		out = append(out, page.Paragraph("  ", format.Plain(r.Strategy+": "+shownBy[r.Reason.Kind]+": "+r.Reason.Text))...)
		out = append(out, commandLines("    ", r.Reason.Command)...)
	}
	return append(out, declared.lines(page)...)
}

// stageLines say how many strategies each stage left, and what the figures do not cover.
func stageLines(page layout.Page, c *results.Choice) []string {
	var parts []string
	for _, s := range c.Stages {
		text := fmt.Sprintf("%s %d → %d", s.Name, s.Entered, s.Left)
		if s.Cut {
			text += " (ended early)"
		}
		parts = append(parts, text)
	}
	out := page.Paragraph("stages  ", format.Plain(strings.Join(parts, ", ")))
	for _, n := range c.Notes {
		out = append(out, page.Paragraph("note    ", format.Plain(n))...)
	}
	return out
}
