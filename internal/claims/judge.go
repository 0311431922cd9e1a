package claims

import (
	"fmt"
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
	if c.Unmeasurable != "" {
		return j, nil
	}
	if c.Cell != nil {
		j.cell(c.Cell, records[c.Cell.Run])
		return j, nil
	}
	if err := j.draw(c, records); err != nil {
		return j, f.about(c, err)
	}
	e := evaluation{records: records, tolerance: c.within()}
	if c.needs != nil {
		t, err := e.truth(c.needs.node)
		j.Close = t.Close
		if err != nil || !t.Yes {
			j.Verdict, j.Why = Undecided, "what it is about did not happen ("+c.Needs+")"
			if t.Why != "" {
				j.Why = t.Why
			}
			return j, f.about(c, err)
		}
	}
	var err error
	if c.Each != "" {
		err = j.each(c, records)
	} else {
		err = j.once(c, &evaluation{records: records, tolerance: c.within()})
	}
	return j, f.about(c, err)
}

// about is an error of a claim, at its place in the file.
func (f *File) about(c *Claim, err error) error {
	if err == nil {
		return nil
	}
	i := slices.IndexFunc(f.Claims, func(o Claim) bool { return o.ID == c.ID })
	return f.wrong(fmt.Sprintf("$.claims[%d].holds", i), fmt.Errorf("%s: %w", c.ID, err))
}

// once decides a condition that is no sweep's.
func (j *Judgement) once(c *Claim, e *evaluation) error {
	t, err := e.truth(c.holds.node)
	if err != nil {
		return err
	}
	j.Verdict = verdict(t)
	j.Why, j.Close = t.Why, j.Close || t.Close
	if j.Measured, err = e.shown(c.shows, c.Named); err != nil {
		return err
	}
	if c.form != nil {
		j.Form, err = e.shown(c.form, "")
	}
	return err
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

// shown is the name and the text of an expression, or of the left side of the first comparison.
func (e *evaluation) shown(x *Expression, named string) (string, error) {
	text, err := e.text(x)
	if err != nil || text == "" {
		return "", err
	}
	return e.name(x, named) + " = " + text, nil
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
		if v, err = e.value(x.node); err != nil {
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

// add appends what an expression shows at a value, with its name before the first.
func (e *evaluation) add(list []string, x *Expression, named, value string) ([]string, error) {
	text, err := e.text(x)
	if text == "" {
		return list, err
	}
	if len(list) == 0 {
		text = e.name(x, named) + " = " + text
	}
	return append(list, text+" at "+value), err
}

// each decides the condition at each point of a sweep.
func (j *Judgement) each(c *Claim, records map[string]*Record) error {
	sweep := records[c.Each]
	if sweep.Why != "" || sweep.File == nil || sweep.File.Sweep == nil {
		j.Verdict, j.Why = Undecided, sweep.Why
		return nil
	}
	p := sweep.File.Sweep.Parameters[0]
	by := map[Verdict][]string{}
	var measured, forms []string
	why := ""
	for _, value := range p.Values {
		at := pointOf(c, records, c.Each, value)
		t, err := at.truth(c.holds.node)
		if err != nil {
			return err
		}
		if why == "" {
			why = t.Why
		}
		j.Close = j.Close || t.Close
		by[verdict(t)] = append(by[verdict(t)], value)
		if measured, err = at.add(measured, c.shows, c.Named, value); err == nil && c.form != nil {
			forms, err = at.add(forms, c.form, "", value)
		}
		if err != nil {
			return err
		}
	}
	j.Measured, j.Form = strings.Join(measured, "; "), strings.Join(forms, "; ")
	j.overall(p.Name, by, why)
	return nil
}

// pointOf is the evaluation at a value of a sweep.
func pointOf(c *Claim, records map[string]*Record, sweep, value string) *evaluation {
	here := *records[sweep]
	here.point = value
	at := &evaluation{records: with(records, sweep, &here), point: value, tolerance: c.within()}
	if x, ok := results.SweepNumber(value); ok {
		at.point = exactly(x)
	}
	return at
}

// overall is the verdict over all values of a parameter.
func (j *Judgement) overall(name string, by map[Verdict][]string, why string) {
	of := func(v Verdict) string { return name + " = " + strings.Join(by[v], ", ") }
	switch {
	case by[Undecided] != nil && by[Holds] == nil:
		j.Verdict, j.Why = Undecided, of(Undecided)+": "+why
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

func with(records map[string]*Record, name string, r *Record) map[string]*Record {
	out := map[string]*Record{name: r}
	for n, old := range records {
		if n != name {
			out[n] = old
		}
	}
	return out
}
