package claims

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/report/condition"
	"github.com/quotabench/quotabench/results"
)

// Verdict on a claim.
type Verdict string

// The verdicts.
const (
	Holds       Verdict = "holds"
	Refuted     Verdict = "refuted"
	HoldsOnlyIf Verdict = "holds only if"
	Undecided   Verdict = "undecided"
	NotHere     Verdict = "not measurable here"
)

// Verdicts in the order of reports.
var Verdicts = []Verdict{Holds, HoldsOnlyIf, Refuted, Undecided, NotHere}

// Disturbed says what is known of a figure that has [figures.Mark].
const Disturbed = "waiting for a core or another program had a part in it: a time is an upper bound, a throughput a " +
	"lower one"

// Judgement is a claim with its verdict.
type Judgement struct {
	// Record is the design record.
	Record string `json:"record"`
	// ID of the claim.
	ID string `json:"id"`
	// Says is the claim.
	Says string `json:"says"`
	// Source is where the record says so.
	Source string `json:"source,omitempty"`
	// Verdict is one of the five.
	Verdict Verdict `json:"verdict" jsonschema:"enum=holds,enum=refuted,enum=holds only if,enum=undecided,enum=not measurable here"`
	// Close is set if another pass may decide otherwise: of what was measured, a figure is close to its limit, or missing.
	Close bool `json:"close,omitempty"`
	// Why it is undecided or cannot be measured, or the condition under which it holds.
	Why string `json:"why,omitempty"`
	// Note is what readers have to know of the verdict.
	Note string `json:"note,omitempty"`
	// Promised is the record's figure.
	Promised string `json:"promised,omitempty"`
	// Measured is ours.
	Measured string `json:"measured,omitempty"`
	// Figures of a cell of a matrix, in the order of its table; absent for claims.
	Figures []Shown `json:"figures,omitempty"`
	// Form is the figure in a form that does not depend on the machine.
	Form string `json:"form,omitempty"`
	// Condition that has to hold.
	Condition string `json:"condition,omitempty"`
	// Curve is a figure over the values of a sweep.
	Curve *Curve `json:"curve,omitempty"`
	// Schedule is the directory of a search.
	Schedule string `json:"schedule,omitempty"`
	// Commands repeat what is behind the verdict.
	Commands []string `json:"commands,omitempty"`
	// Directories have the records of these commands, below that of the report.
	Directories []string `json:"directories,omitempty"`
	// Gate is set if the command fails unless the claim holds.
	Gate bool `json:"gate,omitempty"`
}

// Text is the verdict with its mark.
func (j *Judgement) Text() string {
	if j.Close {
		return string(j.Verdict) + ", close"
	}
	return string(j.Verdict)
}

// Fails reports whether a gate has failed.
func (j *Judgement) Fails() bool { return j.Gate && j.Verdict != Holds }

// Judge decides one claim by the records of its runs.
func (f *File) Judge(claim *Claim, records map[string]*Record) (Judgement, error) {
	j := Judgement{
		Record: f.Record, ID: claim.ID, Says: claim.Says, Source: claim.Source, Promised: claim.Promised,
		Condition: claim.Holds, Gate: claim.Gate, Note: claim.Note,
		Verdict: NotHere, Why: claim.Unmeasurable,
	}
	switch {
	case claim.Unmeasurable != "":
		return j, nil
	case claim.Cell != nil:
		j.cell(claim.Cell, records[claim.Cell.Run])
		return j, nil
	}
	err := j.draw(claim, records)
	if err == nil {
		err = j.decide(claim, records)
	}
	if err == nil {
		return j, nil
	}
	i := slices.IndexFunc(f.Claims, func(o Claim) bool { return o.ID == claim.ID })
	return j, f.wrong(fmt.Sprintf("$.claims[%d].holds", i), fmt.Errorf("%s: %w", claim.ID, err))
}

// decide decides the condition of a claim, at each point if it is a sweep's.
func (j *Judgement) decide(claim *Claim, records map[string]*Record) error {
	if claim.needs != nil {
		truth, err := claim.evaluation(records).Truth(claim.needs)
		j.Close = truth.Close
		if err != nil || !truth.Yes {
			j.Verdict = Undecided
			j.Why = cmp.Or(truth.Why, "what it is about did not happen ("+claim.Needs+")")
			return err
		}
	}
	swept := results.Swept{Values: []string{""}}
	if sweep := records[claim.Each]; claim.Each != "" {
		if sweep.Why != "" || sweep.File == nil || sweep.File.Sweep == nil {
			j.Verdict = Undecided
			j.Why = sweep.Why
			return nil
		}
		swept = sweep.File.Sweep.Parameters[0]
	}
	by := map[Verdict][]string{}
	for _, value := range swept.Values {
		verdict, err := j.decideAt(claim, records, value)
		if err != nil {
			return err
		}
		by[verdict] = append(by[verdict], value)
	}
	j.overall(swept.Name, by)
	return nil
}

// decideAt decides the claim at a value of what it is about each of, "" if it is about one run, and adds the figures
// there.
func (j *Judgement) decideAt(claim *Claim, records map[string]*Record, value string) (Verdict, error) {
	at := claim.evaluation(records)
	if claim.Each != "" {
		at = at.At(claim.Each, value)
	}
	truth, err := at.Truth(claim.holds)
	if err != nil {
		return Undecided, err
	}
	j.Why = cmp.Or(j.Why, truth.Why)
	j.Close = j.Close || truth.Close
	where := ""
	mark := ""
	if value != "" {
		where = " at " + value
		mark = " " + Marks[verdict(truth)]
	}
	j.Measured, err = shown(j.Measured, at, claim.shows, claim.Named, where+mark)
	if err == nil && claim.form != nil {
		j.Form, err = shown(j.Form, at, claim.form, "", where)
	}
	return verdict(truth), err
}

func verdict(truth condition.Truth) Verdict {
	switch {
	case truth.Yes:
		return Holds
	case truth.No:
		return Refuted
	}
	return Undecided
}

// shown appends to a text what an expression shows, or the left side of the first comparison. Its name is before the
// first of them, and where, a value of a sweep, behind each.
func shown(before string, at *condition.Evaluation, expression *condition.Expression,
	named, where string) (string, error) {
	text, err := at.Text(expression)
	if text == "" {
		return before, err
	}
	if before != "" {
		return before + "; " + text + where, err
	}
	return cmp.Or(named, at.Words(expression)) + " = " + text + where, err
}

// evaluation of a claim, by the records of its runs.
func (c *Claim) evaluation(records map[string]*Record) *condition.Evaluation {
	return &condition.Evaluation{Records: records, Tolerance: c.within()}
}

// overall is the verdict over all values of a parameter, which has no name if there is no sweep.
func (j *Judgement) overall(name string, by map[Verdict][]string) {
	of := func(verdict Verdict) string { return name + " = " + strings.Join(by[verdict], ", ") }
	switch {
	case by[Undecided] != nil && by[Holds] == nil:
		j.Verdict = Undecided
		if name != "" {
			j.Why = of(Undecided) + ": " + j.Why
		}
	case by[Holds] == nil:
		j.Verdict = Refuted
	case by[Refuted] == nil && by[Undecided] == nil:
		j.Verdict = Holds
	default:
		j.Verdict, j.Why = HoldsOnlyIf, of(Holds)
		if by[Refuted] != nil {
			j.Why += "; not with " + of(Refuted)
		}
		if by[Undecided] != nil {
			j.Why += "; undecided with " + of(Undecided)
		}
	}
}
