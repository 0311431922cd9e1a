package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// Undeclared is the verdict on a cell whose strategy declares nothing under the fault.
const Undeclared Verdict = "nothing declared"

// CellVerdicts are those on cells, the gravest first.
var CellVerdicts = []Verdict{Refuted, Undecided, Holds, Undeclared, NotHere}

// Marks stand for the verdicts where there is little room.
var Marks = map[Verdict]string{Refuted: "✗", Undecided: "?", Holds: "✓", Undeclared: "–", NotHere: ""}

// Cell asks for what a strategy makes of a fault, in place of a condition: what it declares is compared with what
// happened in each round.
type Cell struct {
	// Run is the run that has it, and Label the strategy there.
	Run, Label string
	// Down is what the strategy declares of requests that its store does not answer: [strategies.Meta.Down].
	Down string
}

// Shown is a figure of a cell.
type Shown struct {
	// Key of the figure, as in docs/metrics.md.
	Key string `json:"key"`
	// Value in the figure's unit; absent if there is none, or if it does not count.
	Value *float64 `json:"value,omitempty"`
	// Text is the figure as tables show it; empty if there is none.
	Text string `json:"text"`
}

// ByStrategy are the cells of a matrix by their strategies, and ByFault by their faults, in the order of the report.
func (r *Report) ByStrategy() [][]*Judgement { return r.by(func(j *Judgement) string { return j.ID }) }

// ByFault is described at [Report.ByStrategy].
func (r *Report) ByFault() [][]*Judgement { return r.by(func(j *Judgement) string { return j.Record }) }

func (r *Report) by(key func(*Judgement) string) (out [][]*Judgement) {
	var cells collect.By[string, *Judgement]
	for i := range r.Claims {
		cells.Add(key(&r.Claims[i]), &r.Claims[i])
	}
	for _, k := range cells.Keys {
		out = append(out, cells.Of[k])
	}
	return out
}

// cell judges one by the rounds of its runs that are valid: by the gravest of those that decide, whatever others leave open.
// Another pass may decide otherwise if they differ. It is a gate if what is declared is refuted, or if there is no record.
func (j *Judgement) cell(c *Cell, r *Record) {
	defer func() { j.Gate = j.Verdict == Refuted || r.File == nil }()
	j.Verdict = Undecided
	row := r.row(c.Label)
	if m, ok := row.(missing); ok {
		j.Why = m.why
		if !r.short() {
			j.Verdict = NotHere
		}
		return
	}
	s := row.(object).Interface().(*results.Summary)
	j.figures(s)
	j.Promised = format.List(s.Guarantee, "; ", func(g results.Clause) string { return g.Property + " " + g.Formula })
	if c.Down != "" {
		j.Promised = format.Join("; ", j.Promised, "fail-"+c.Down)
	}
	worst := -1
	open := ""
	for i := range r.File.Runs {
		x := &r.File.Runs[i]
		if x.Key() != s.Key {
			continue
		}
		if err := x.Err(); err != nil {
			if worst < 0 {
				j.Why = err.Error()
			}
			continue
		}
		v, why := c.round(x)
		n := slices.Index(CellVerdicts, v)
		j.Close = j.Close || worst >= 0 && n != worst
		if v == Undecided {
			open = why
		}
		if worst < 0 || j.Verdict == Undecided || v != Undecided && n < worst {
			worst = n
			j.Verdict = v
			j.Why = why
		}
	}
	if j.Verdict == Holds && open != "" {
		j.Why = "not in each round: " + open
	}
}

// figures sets what the record has of the table "faults".
func (j *Judgement) figures(s *results.Summary) {
	var notes figures.Notes
	for _, key := range figures.Table("faults") {
		f := figures.Of(key)
		shown := Shown{Key: key, Text: f.Text(s, &notes)}
		if x, err := f.Value(s); err == nil && shown.Text != "" {
			shown.Value = &x
		}
		j.Figures = append(j.Figures, shown)
		if shown.Text != "" {
			j.Measured = format.Join("; ", j.Measured, f.Label()+" "+format.Plain(strings.ReplaceAll(shown.Text, "\n", ", ")))
		}
	}
}

// round compares what is declared with what happened in one round.
func (c *Cell) round(r *results.Run) (Verdict, string) {
	admitted := r.DegradedAdmitted
	others := r.Degraded - r.DegradedAdmitted + r.Errors
	if r.ErrorKinds != nil {
		others -= r.ErrorKinds.Killed
	}
	for _, o := range r.Outages {
		admitted += o.AdmittedByStore
		others += o.RejectedByStore
	}
	switch {
	case c.Down == "closed" && admitted > 0:
		return Refuted, fmt.Sprintf("it declares to fail closed, and admitted %s without its store", format.Number(admitted, "request"))
	case c.Down == "open" && others > 0:
		return Refuted, fmt.Sprintf("it declares to fail open, and did not admit %s without its store", format.Number(others, "request"))
	}
	found := Undeclared
	why := ""
	if r.Overwritten > 0 {
		return found, "nothing is declared for counters that somebody else changes"
	}
	if c.Down != "" && admitted+others > 0 {
		found = Holds
	}
	tested := len(r.Guarantee) == 0
	for i := range r.Guarantee {
		g := &r.Guarantee[i]
		tested = tested || g.Verdict != results.NotExercised
		v, judged := map[string]Verdict{results.Broken: Refuted, results.Undecided: Undecided, results.Kept: Holds}[g.Verdict]
		if judged && slices.Index(CellVerdicts, v) < slices.Index(CellVerdicts, found) {
			found = v
			if v != Holds {
				why = fmt.Sprintf("declared is %s %s; %s certain, %s possible", g.Property, g.Formula,
					format.Units(g.Certain, r.Params.Unit), format.Count(g.Possible))
			}
		}
	}
	switch {
	case why == "" && len(r.NotPromised) > 0:
		why = "no bound on the leak tolerates " + strings.Join(r.NotPromised, ", ")
	case found == Undeclared && !tested:
		return Undecided, "the load could not have broken what it declares"
	}
	return found, why
}
