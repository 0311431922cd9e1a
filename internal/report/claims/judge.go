package claims

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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
func (f *File) Judge(c *Claim, records map[string]*Record) (Judgement, error) {
	j := Judgement{
		Record: f.Record, ID: c.ID, Says: c.Says, Source: c.Source, Promised: c.Promised, Condition: c.Holds, Gate: c.Gate,
		Verdict: NotHere, Why: c.Unmeasurable,
	}
	switch {
	case c.Unmeasurable != "":
		return j, nil
	case c.Cell != nil:
		j.cell(c.Cell, records[c.Cell.Run])
		return j, nil
	}
	err := j.draw(c, records)
	if err == nil {
		err = j.decide(c, records)
	}
	if err == nil {
		return j, nil
	}
	i := slices.IndexFunc(f.Claims, func(o Claim) bool { return o.ID == c.ID })
	return j, f.wrong(fmt.Sprintf("$.claims[%d].holds", i), fmt.Errorf("%s: %w", c.ID, err))
}

// decide decides the condition of a claim, at each point if it is a sweep's.
func (j *Judgement) decide(c *Claim, records map[string]*Record) error {
	if c.needs != nil {
		t, err := pointOf(c, records, "", "").truth(c.needs.node)
		j.Close = t.Close
		if err != nil || !t.Yes {
			j.Verdict = Undecided
			j.Why = cmp.Or(t.Why, "what it is about did not happen ("+c.Needs+")")
			return err
		}
	}
	p := results.Swept{Values: []string{""}}
	if sweep := records[c.Each]; c.Each != "" {
		if sweep.Why != "" || sweep.File == nil || sweep.File.Sweep == nil {
			j.Verdict = Undecided
			j.Why = sweep.Why
			return nil
		}
		p = sweep.File.Sweep.Parameters[0]
	}
	by := map[Verdict][]string{}
	var measured, forms []string
	for _, value := range p.Values {
		at := pointOf(c, records, c.Each, value)
		t, err := at.truth(c.holds.node)
		if err != nil {
			return err
		}
		j.Why = cmp.Or(j.Why, t.Why)
		j.Close = j.Close || t.Close
		by[verdict(t)] = append(by[verdict(t)], value)
		measured, err = at.add(measured, c.shows, c.Named, value)
		if err == nil && c.form != nil {
			forms, err = at.add(forms, c.form, "", value)
		}
		if err != nil {
			return err
		}
	}
	j.Measured = strings.Join(measured, "; ")
	j.Form = strings.Join(forms, "; ")
	j.overall(p.Name, by)
	return nil
}

func verdict(t Truth) Verdict {
	switch {
	case t.Yes:
		return Holds
	case t.No:
		return Refuted
	}
	return Undecided
}

func (e *evaluation) name(x *Expression, named string) string {
	if named != "" {
		return named
	}
	node := e.first.node
	if x != nil {
		node = x.node
	}
	return words(node, e.records)
}

func (e *evaluation) text(x *Expression) (string, error) {
	var v any
	switch {
	case x != nil:
		var err error
		v, err = e.value(x.node)
		if err != nil {
			return "", err
		}
	case e.first != nil:
		v = e.first.left
	}
	switch n := v.(type) {
	case Number:
		return n.Text(), nil
	case string:
		return n, nil
	case Truth:
		return string(verdict(n)), nil
	}
	return "", nil
}

// add appends what an expression shows, or the left side of the first comparison, at a value of a sweep if there is one. Its name
// is before the first.
func (e *evaluation) add(list []string, x *Expression, named, value string) ([]string, error) {
	text, err := e.text(x)
	if text == "" {
		return list, err
	}
	if len(list) == 0 {
		text = e.name(x, named) + " = " + text
	}
	if value != "" {
		text += " at " + value
	}
	return append(list, text), err
}

// pointOf is the evaluation at a value of a sweep, or of all records if none is named.
func pointOf(c *Claim, records map[string]*Record, sweep, value string) *evaluation {
	at := &evaluation{records: records, tolerance: c.within()}
	if sweep == "" {
		return at
	}
	here := *records[sweep]
	here.point = value
	at.records = maps.Clone(records)
	at.point = value
	at.records[sweep] = &here
	if x, ok := results.SweepNumber(value); ok {
		at.point = exactly(x)
	}
	return at
}

// overall is the verdict over all values of a parameter, which has no name if there is no sweep.
func (j *Judgement) overall(name string, by map[Verdict][]string) {
	of := func(v Verdict) string { return name + " = " + strings.Join(by[v], ", ") }
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
