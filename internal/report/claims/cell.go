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
	// Down is what the strategy declares of requests that its store does not answer: [strategies.Abilities.Down].
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
	// Disturbed is set if something else than the strategy had a part in the figure, which the text marks.
	Disturbed bool `json:"disturbed,omitempty"`
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

// cell judges one by the rounds of its runs that are valid: by the gravest of those that decide, whatever others leave
// open. Another pass may decide otherwise if they differ. It is a gate if what is declared is refuted, or if there is
// no record.
func (j *Judgement) cell(cell *Cell, record *Record) {
	defer func() { j.Gate = j.Verdict == Refuted || record.File == nil }()
	j.Verdict = Undecided
	summary, why := record.Summary(cell.Label)
	if summary == nil {
		j.Why = why
		if !record.Short() {
			j.Verdict = NotHere
		}
		return
	}
	j.figures(summary)
	j.Promised = format.List(summary.Guarantee, "; ", func(clause results.Clause) string {
		return clause.Property + " " + clause.Formula
	})
	if cell.Down != "" {
		j.Promised = format.Join("; ", j.Promised, "fail-"+cell.Down)
	}
	worst := -1
	open := ""
	for i := range record.File.Runs {
		run := &record.File.Runs[i]
		if run.Key() != summary.Key {
			continue
		}
		if err := run.Err(); err != nil {
			if worst < 0 {
				j.Why = err.Error()
			}
			continue
		}
		verdict, why := cell.round(run)
		n := slices.Index(CellVerdicts, verdict)
		j.Close = j.Close || worst >= 0 && n != worst
		if verdict == Undecided {
			open = why
		}
		if worst < 0 || j.Verdict == Undecided || verdict != Undecided && n < worst {
			worst = n
			j.Verdict = verdict
			j.Why = why
		}
	}
	if j.Verdict == Holds && open != "" {
		j.Why = "not in each round: " + open
	}
}

// figures sets what the record has of the table "faults".
func (j *Judgement) figures(summary *results.Summary) {
	var notes figures.Notes
	for _, key := range figures.Table("faults") {
		figure := figures.Of(key)
		shown := Shown{Key: key, Text: figure.Text(summary, &notes)}
		shown.Disturbed = shown.Text != "" && figure.Disturbed(summary)
		if value, err := figure.Value(summary); err == nil && shown.Text != "" {
			shown.Value = &value
		}
		j.Figures = append(j.Figures, shown)
		if shown.Text != "" {
			j.Measured = format.Join("; ", j.Measured, figure.Label()+" "+
				format.Plain(strings.ReplaceAll(shown.Text, "\n", ", ")))
		}
	}
}

// round compares what is declared with what happened in one round.
func (c *Cell) round(run *results.Run) (Verdict, string) {
	admitted := run.DegradedAdmitted
	others := run.Degraded - run.DegradedAdmitted + run.Errors
	if run.ErrorKinds != nil {
		others -= run.ErrorKinds.Killed
	}
	for _, span := range run.Outages {
		admitted += span.AdmittedByStore
		others += span.RejectedByStore
	}
	switch {
	case c.Down == "closed" && admitted > 0:
		return Refuted, fmt.Sprintf("it declares to fail closed, and admitted %s without its store",
			format.Number(admitted, "request"))
	case c.Down == "open" && others > 0:
		return Refuted, fmt.Sprintf("it declares to fail open, and did not admit %s without its store",
			format.Number(others, "request"))
	}
	found := Undeclared
	why := ""
	if run.Overwritten > 0 {
		return found, "nothing is declared for counters that somebody else changes"
	}
	if c.Down != "" && admitted+others > 0 {
		found = Holds
	}
	tested := len(run.Guarantee) == 0
	for i := range run.Guarantee {
		clause := &run.Guarantee[i]
		tested = tested || clause.Verdict != results.NotExercised
		verdict, judged := map[string]Verdict{results.Broken: Refuted, results.Undecided: Undecided,
			results.Kept: Holds}[clause.Verdict]
		if judged && slices.Index(CellVerdicts, verdict) < slices.Index(CellVerdicts, found) {
			found = verdict
			if verdict != Holds {
				why = fmt.Sprintf("declared is %s %s; %s certain, %s possible", clause.Property, clause.Formula,
					format.Units(clause.Certain, run.Params.Unit), format.Count(clause.Possible))
			}
		}
	}
	switch {
	case why == "" && len(run.NotPromised) > 0:
		why = "no bound on the leak tolerates " + strings.Join(run.NotPromised, ", ")
	case found == Undeclared && !tested && allFailed(run) != "":
		return Undecided, allFailed(run)
	case found == Undeclared && !tested:
		return Undecided, "the load could not have broken what it declares"
	}
	return found, why
}

// allFailed is why every request ended in an error that the source of the strategy asks for; empty if not all did.
func allFailed(run *results.Run) string {
	i := slices.IndexFunc(run.Audit.Reasons, func(reason results.Reason) bool {
		return reason.Code == "prescribed-errors"
	})
	if i < 0 || run.Errors < run.Issued {
		return ""
	}
	return run.Audit.Reasons[i].Detail
}
