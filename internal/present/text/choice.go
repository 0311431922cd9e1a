package text

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Choice writes which strategies serve a policy, and what rules out the others. With
// commands it has the one that shows each figure again, and without only those of
// schedules, which are short.
func Choice(w io.Writer, page layout.Page, c *results.Choice, commands bool) error {
	out := bufio.NewWriter(w)
	x := choice{page: page, commands: commands, line: func(s string) { fmt.Fprintln(out, s) }}
	x.paragraph("", questionText(&c.Question))
	x.line("")
	x.candidates(c)
	x.ruledOut(c)
	x.notTested(c)
	x.stages(c)
	return out.Flush()
}

// choice writes parts of a [results.Choice].
type choice struct {
	page     layout.Page
	commands bool
	line     func(string)
}

func (x *choice) paragraph(head, text string) {
	for _, l := range x.page.Paragraph(head, format.Plain(text)) {
		x.line(l)
	}
}

func (x *choice) title(text string) {
	for _, l := range x.page.Title(text) {
		x.line(l)
	}
}

// command shows one on a line of its own, unbroken, to be copied.
func (x *choice) command(indent string, e *results.Evidence) {
	if e.Command != "" && (x.commands || e.Token != "") {
		x.line(indent + format.Plain(e.Command))
	}
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

func (x *choice) candidates(c *results.Choice) {
	if len(c.Candidates) == 0 {
		x.title("NO CANDIDATE  every strategy that could be tested is ruled out")
		x.line("")
		return
	}
	x.title("CANDIDATES  the best first")
	for i := range c.Candidates {
		x.candidate(fmt.Sprintf("%d. ", i+1), &c.Candidates[i])
	}
	x.line("")
	if len(c.Others) == 0 {
		return
	}
	x.title("ALSO FIT  and rank behind them")
	wide := widest(len(c.Others), func(i int) string { return c.Others[i].Strategy })
	for _, o := range c.Others {
		x.paragraph("  "+layout.Pad(o.Strategy, wide)+"  ", format.Join("; ", append([]string{costOf(&o)}, o.Caveats...)...))
	}
	x.line("")
}

func (x *choice) candidate(number string, c *results.Candidate) {
	const indent = "   "
	x.paragraph(number, c.Strategy+": "+c.Doc)
	needs := "needs no store"
	if len(c.Stores) > 0 {
		needs = "needs " + strings.Join(c.Stores, ", ")
	}
	x.paragraph(indent, format.Join("; ", needs, c.Deployment, costOf(c)))
	for i := range c.Evidence {
		e := &c.Evidence[i]
		x.paragraph(indent+"+ ", kindText(e)+e.Text)
		if x.commands {
			x.command(indent+"  ", e)
		}
	}
	for _, caveat := range c.Caveats {
		x.paragraph(indent+"! ", caveat)
	}
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

// kindText says what evidence consists of.
func kindText(e *results.Evidence) string {
	switch e.Kind {
	case results.EvidenceSchedule:
		return "searched "
	case results.EvidenceMeasured:
		return "measured "
	case results.EvidenceSimulated:
		return "simulated "
	default:
		return ""
	}
}

func (x *choice) ruledOut(c *results.Choice) {
	if len(c.RuledOut) == 0 {
		return
	}
	x.title("RULED OUT  each by the first reason that was found")
	shown := func(r *results.RuledOut) bool { return r.Reason.Kind != results.EvidenceDeclared }
	wide := widest(len(c.RuledOut), func(i int) string {
		if r := &c.RuledOut[i]; shown(r) {
			return r.Strategy
		}
		return ""
	})
	var reasons []string
	declaring := map[string][]string{}
	for i := range c.RuledOut {
		r := &c.RuledOut[i]
		if !shown(r) {
			if declaring[r.Reason.Text] == nil {
				reasons = append(reasons, r.Reason.Text)
			}
			declaring[r.Reason.Text] = append(declaring[r.Reason.Text], r.Strategy)
			continue
		}
		x.paragraph("  "+layout.Pad(r.Strategy, wide)+"  ", kindText(&r.Reason)+r.Reason.Text)
		x.command(strings.Repeat(" ", wide+4), &r.Reason)
	}
	for _, reason := range reasons {
		x.paragraph("  ", strings.Join(declaring[reason], ", ")+": "+reason)
	}
	x.line("")
}

func (x *choice) notTested(c *results.Choice) {
	if len(c.NotTested) == 0 {
		return
	}
	x.title("NOT TESTED  nothing is said of them")
	var reasons []string
	of := map[string][]string{}
	for _, u := range c.NotTested {
		if of[u.Reason] == nil {
			reasons = append(reasons, u.Reason)
		}
		of[u.Reason] = append(of[u.Reason], u.Strategy)
	}
	for _, reason := range reasons {
		x.paragraph("  ", strings.Join(of[reason], ", ")+": "+reason)
		for _, u := range c.NotTested {
			if u.Reason == reason && u.Command != "" && x.commands {
				x.line("    " + format.Plain(u.Command))
			}
		}
	}
	x.line("")
}

// stages says how many strategies each stage left, and what the figures do not cover.
func (x *choice) stages(c *results.Choice) {
	var parts []string
	for _, s := range c.Stages {
		text := fmt.Sprintf("%s %d → %d", s.Name, s.Entered, s.Left)
		if s.Cut {
			text += " (ended early)"
		}
		parts = append(parts, text)
	}
	x.paragraph("stages  ", strings.Join(parts, ", "))
	for _, n := range c.Notes {
		x.paragraph("note    ", n)
	}
	if c.Interrupted {
		x.paragraph("note    ", "interrupted: this is what was known by then")
	}
}

// widest is the width of the widest of n names, in cells.
func widest(n int, name func(int) string) (wide int) {
	for i := range n {
		wide = max(wide, layout.TextWidth(name(i)))
	}
	return wide
}
