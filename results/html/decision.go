package html

import (
	"strconv"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/answer"
	"github.com/quotabench/quotabench/results/text"
)

// decisionColumn is a column of the table to decide from.
type decisionColumn struct {
	Title string
	// Doc is a line about it.
	Doc string
	// Figure columns are set flush right.
	Figure bool
	// Wrap lets what belongs to a figure take several lines.
	Wrap bool
	of   func(s *results.Summary, v *settingView) decisionCell
	// only says where it is shown; nil is everywhere.
	only func(v *settingView) bool
}

// decisionCell is a figure with what belongs to it.
type decisionCell struct {
	Main, Sub string
	// Sort is the number by which rows are sorted; empty where there is none.
	Sort string
	// Bad marks what speaks against the strategy.
	Bad bool
}

// decisionRow is a strategy.
type decisionRow struct {
	Label, Panel string
	Group        groupView
	Reason       string
	PerProcess   bool
	Cells        []decisionCell
}

func measured(v *settingView) bool { return !v.simulated }

// decisionColumns after the strategy and its group.
var decisionColumns = []decisionColumn{
	{Title: "leak", Doc: "units admitted over the limit, certain..possible, and in percent of the limit times the trials", Figure: true, of: leakOf},
	{Title: "worst window", Doc: "largest leak of one subject and window, and the strictest bound that the strategy declares", Figure: true, of: worstOf},
	{Title: "false rejects", Doc: "of valid requests, certain..possible", Figure: true, of: falseRejectsOf},
	{Title: "p50", Doc: "latency that half of the requests stay within", Figure: true, of: func(s *results.Summary, v *settingView) decisionCell {
		return v.percentile(s, s.Latency().P50)
	}},
	{Title: "p99", Doc: "latency that 99 of 100 requests stay within, and its interval over rounds", Figure: true, of: func(s *results.Summary, v *settingView) decisionCell {
		return v.percentile(s, s.Latency().P99)
	}},
	{Title: "decisions/s", Doc: "of callers that never pause, and by those of a bare client's INCR loop", Figure: true, of: throughputOf, only: measured},
	{Title: "commands", Doc: "commands and statements to stores, per decision", Figure: true, of: commandsOf},
	{Title: "errors", Doc: "requests without a decision, of all", Figure: true, Wrap: true, of: errorsOf},
	{Title: "guarantee", Doc: "what the strategy declares, and whether it was kept", of: guaranteeOf},
}

// decide fills the table.
func (v *settingView) decide(a *answer.Setting, p *panels) {
	v.Notes = append(v.Notes, text.KeptRounds(v.group))
	for _, c := range decisionColumns {
		if c.only == nil || c.only(v) {
			v.Columns = append(v.Columns, c)
		}
	}
	for i := range v.group {
		s, x := &v.group[i], &a.Strategies[i]
		row := decisionRow{Label: labelOf(s), Panel: p.of(labelOf(s), s.Strategy).ID, Group: groupOf(x.Group), Reason: x.Reason, PerProcess: x.PerProcess}
		for _, c := range v.Columns {
			row.Cells = append(row.Cells, c.of(s, v))
		}
		v.Rows = append(v.Rows, row)
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// invalid stands where no round counts.
var invalid = decisionCell{Main: "invalid", Bad: true}

func leakOf(s *results.Summary, _ *settingView) decisionCell {
	if !s.Counts() {
		return invalid
	}
	l := &s.Leak
	c := decisionCell{Main: format.Range(l.Units, l.Possible), Sort: number(l.PctOfLimit), Bad: l.Units > 0}
	switch {
	case l.Possible > 0:
		c.Sub = format.Pct(l.PctOfLimit) + " of limit"
	case l.Trials > 0:
		c.Sub = "≤ " + format.Pct(100*results.RateBound(l.Trials)) + " of trials"
	}
	return c
}

func worstOf(s *results.Summary, _ *settingView) decisionCell {
	if !s.Counts() {
		return decisionCell{Main: "-"}
	}
	c := decisionCell{Main: format.Count(s.Leak.WorstUnits), Sort: number(float64(s.Leak.WorstUnits)), Sub: "no bound"}
	if g := strictest(s); g != nil && g.Bound != quota.Unbounded {
		c.Sub = "bound " + format.Count(g.Bound)
	}
	return c
}

// strictest is the declared clause on leaks that allows for the least, or nil.
func strictest(s *results.Summary) (least *results.Clause) {
	for i := range s.Guarantee {
		if g := &s.Guarantee[i]; g.Property == results.LeakProperty && (least == nil || g.Bound < least.Bound) {
			least = g
		}
	}
	return least
}

func falseRejectsOf(s *results.Summary, _ *settingView) decisionCell {
	if !s.Counts() {
		return decisionCell{Main: "-"}
	}
	return decisionCell{Main: text.FalseRejects(s), Sort: number(s.FalseRejects.PctOfValid), Bad: s.FalseRejects.Count > 0}
}

func (v *settingView) percentile(s *results.Summary, p results.Percentile) decisionCell {
	at := s.AtRate()
	if 2*at.Saturated > at.Timed {
		v.Notes = merged(v.Notes, []string{"saturated: cannot keep up with this rate, requests wait longer and longer"})
		return decisionCell{Main: "saturated", Sort: number(float64(results.MaxDuration)), Bad: true}
	}
	var c decisionCell
	var notes []string
	c.Main, notes = percentileText(p)
	v.Notes = merged(v.Notes, notes)
	if p.Status != results.NoSamples && p.Status != results.NotMeasurable {
		c.Sort = number(p.Value)
	}
	if p.Coverage > 0 {
		c.Sub = format.NSInterval(p.Value, p.Lo, p.Hi)
	}
	return c
}

func throughputOf(s *results.Summary, v *settingView) decisionCell {
	if s.Params.Loop == results.OpenLoop {
		return decisionCell{Main: "-"}
	}
	if !s.TimingsCount {
		return v.notMeasurable()
	}
	if s.Throughput.Rounds == 0 {
		return decisionCell{Main: "-"}
	}
	c := decisionCell{Main: format.Count(int64(s.Throughput.Value + 0.5)), Sort: number(s.Throughput.Value)}
	if s.Ratio.Rounds > 0 {
		c.Sub = format.Digits(s.Ratio.Value) + " × INCR"
	}
	return c
}

// notMeasurable stands for a timing of a disturbed machine.
func (v *settingView) notMeasurable() decisionCell {
	cell, notes := percentileText(results.Percentile{Status: results.NotMeasurable})
	v.Notes = merged(v.Notes, notes)
	return decisionCell{Main: cell}
}

func commandsOf(s *results.Summary, _ *settingView) decisionCell {
	c := &s.Cost
	sql := c.SQL + c.ModelSQL
	out := decisionCell{Main: format.Per(answer.PerDecision(s)), Sort: number(answer.PerDecision(s))}
	if sql > 0 {
		out.Sub = format.Per(sql) + " SQL"
	}
	return out
}

func errorsOf(s *results.Summary, _ *settingView) decisionCell {
	if s.Errors == 0 {
		return decisionCell{Main: "0", Sort: "0"}
	}
	share := results.Percent(s.Errors, s.Issued)
	return decisionCell{Main: format.Pct(share), Sub: errorKinds(s), Sort: number(share), Bad: true}
}

func guaranteeOf(s *results.Summary, _ *settingView) decisionCell {
	if !s.Counts() {
		return decisionCell{Main: "-"}
	}
	c := decisionCell{Main: text.Guarantee(s), Bad: s.Verdict == results.Broken}
	if g := strictest(s); g != nil {
		c.Sub = "at most " + g.Formula
	}
	return c
}
