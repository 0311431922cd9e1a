// Package compare compares two records of one kind and says what became worse:
// exact figures by any worsening, timings and other figures that vary from round to
// round by a test over rounds. It reads records and knows nothing of files and
// flags. Source of the rules: docs/comparing.md.
package compare

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/results"
)

// Side is one of the two records that are compared. Either File or Exploration is set.
// Series may be given with a simulated File.
type Side struct {
	// Name is what reports call it, e.g. the name of its file.
	Name string
	// File is the record of runs, measured or simulated.
	File *results.File
	// Series are how the simulated runs of File developed; nil if they are not at hand.
	Series []results.Series
	// Exploration is the record of searches.
	Exploration *results.Exploration
}

// kind of the record, for people.
func (s *Side) kind() string {
	switch {
	case s.Exploration != nil:
		return s.Exploration.Kind
	case s.File != nil:
		return s.File.Kind
	}
	return "missing"
}

// Options say how strictly two records are compared. The zero value allows no exact
// figure to become worse and gates on throughput by the rule [Standard].
type Options struct {
	// Tolerances are by the names of exact figures (see [Figures]) and of timings (see [Timings]), which have them in
	// percent. A percentile of the latency is gated if it has one, and shares the error that one comparison may make.
	Tolerances map[string]Tolerance
	// Gates are checked for each strategy of the head that was compared.
	Gates []Gate
	// Lenient passes a timing that has a tolerance, and of which the rounds cannot tell whether it is kept.
	Lenient bool
	// Rule decides about figures that vary; the zero value means [Standard].
	Rule Rule
	// Strict also fails what is no pass: whatever the rounds cannot tell, discarded timings,
	// and strategies that were not compared.
	Strict bool
	// Paired is set if the rounds of both sides were made in pairs, in random
	// order. It is implied by records of one [results.File.Pairing].
	Paired bool
}

// Comparison is what was found.
type Comparison struct {
	// Base is the name of the record that was compared with.
	Base string `json:"base"`
	// Head is the name of the record that was judged.
	Head string `json:"head"`
	// Kind is "measured", "simulated" or "exploration".
	Kind string `json:"kind"`
	// Strict is set if whatever is no pass fails.
	Strict bool `json:"strict"`
	// Pairs counts what was compared: strategies in one setting, or searches.
	Pairs int `json:"pairs"`
	// Rows are all figures that were compared, and all gates, in the order of the head.
	Rows []Row `json:"rows"`
	// Unmatched are on one side only, or differ in what they were asked to do.
	Unmatched []Unmatched `json:"unmatched"`
	// TimingsRefused says why nothing that depends on the machine was compared; empty
	// if it was.
	TimingsRefused string `json:"timings_refused,omitempty"`
	// Notes are lines for the reader.
	Notes []string `json:"notes,omitempty"`
	// New are schedules of the head, each of which breaks a property that no schedule of the base broke.
	New []results.Finding `json:"new_findings,omitempty"`
}

// Unmatched is a strategy that was not compared, or of which a part was not.
type Unmatched struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Reason why.
	Reason string `json:"reason"`
}

// Kind of a figure: how it was compared.
type Kind string

// The kinds.
const (
	// Exact figures are the same in every repetition: any worsening counts.
	Exact Kind = "exact"
	// Sample figures vary from round to round and are judged by a test.
	Sample Kind = "sample"
	// Condition is one of [Options.Gates].
	Condition Kind = "gate"
)

// Verdict on one figure.
type Verdict string

// The verdicts.
const (
	// Same: no worsening. Of samples: none of [Test.Smallest] or more.
	Same Verdict = "same"
	// Better by more than nothing, or by as much as a worsening would have to be.
	Better Verdict = "better"
	// Worse fails the comparison.
	Worse Verdict = "worse"
	// Invalid fails the comparison: what counts as a pass was not measured.
	Invalid Verdict = "invalid"
	// Inconclusive: the rounds, or the bounds of a search, cannot tell.
	Inconclusive Verdict = "inconclusive"
	// Discarded timings do not count, by the audit of the runs.
	Discarded Verdict = "discarded"
)

// Row is one figure of one strategy on both sides, or a gate.
type Row struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Setting tells what it was asked to do if the strategy occurs more than once.
	Setting string `json:"setting,omitempty"`
	// Figure is its name (see [Figures] and [Timings]), or the text of the gate.
	Figure string `json:"figure"`
	// Of says what has the figure if it is not the whole run, e.g. "first decision".
	Of string `json:"of,omitempty"`
	// Unit of the values.
	Unit string `json:"unit,omitempty"`
	// Kind says how it was compared.
	Kind Kind `json:"kind" jsonschema:"enum=exact,enum=sample,enum=gate"`
	// Base is the value of the base; absent if there is none.
	Base *float64 `json:"base,omitempty"`
	// Head is the value of the head; absent if there is none.
	Head *float64 `json:"head,omitempty"`
	// Verdict on it.
	Verdict Verdict `json:"verdict" jsonschema:"enum=same,enum=better,enum=worse,enum=invalid,enum=inconclusive,enum=discarded"`
	// Advisory figures are shown if they became worse, and fail nothing.
	Advisory bool `json:"advisory,omitempty"`
	// Required figures fail also if nothing can be said of them.
	Required bool `json:"required,omitempty"`
	// Test is set for samples.
	Test *Test `json:"test,omitempty"`
	// Detail is one line for people; empty if the values say it all.
	Detail string `json:"detail,omitempty"`
}

// Name of the figure and of what has it.
func (r *Row) Name() string {
	if r.Of == "" {
		return r.Figure
	}
	return r.Figure + " of " + r.Of
}

// Fails reports whether the row fails a comparison, and with strict whether it fails a
// strict one, which whatever is no pass does.
func (r *Row) Fails(strict bool) bool {
	switch r.Verdict {
	case Worse, Invalid:
		return !r.Advisory
	case Same, Better:
		return false
	}
	return (strict || r.Required) && !r.Advisory
}

// Failed are the rows that fail the comparison.
func (c *Comparison) Failed() (out []Row) {
	for _, row := range c.Rows {
		if row.Fails(c.Strict) {
			out = append(out, row)
		}
	}
	return out
}

// Passes reports whether nothing fails. A strict comparison also fails if a part
// could not be compared.
func (c *Comparison) Passes() bool {
	return len(c.Failed()) == 0 && (!c.Strict || len(c.Unmatched) == 0 && c.TimingsRefused == "")
}

// Compare compares head with base. It returns an error if the two have nothing in common that
// could be compared.
func Compare(base, head Side, options Options) (*Comparison, error) {
	if options.Rule == (Rule{}) {
		options.Rule = Standard
	}
	comparison := &Comparison{Base: base.Name, Head: head.Name, Kind: head.kind(), Strict: options.Strict, Rows: []Row{},
		Unmatched: []Unmatched{}}
	if base.kind() != head.kind() {
		return nil, fmt.Errorf("%s is %s and %s is %s: compare two of one kind", base.Name, base.kind(), head.Name,
			head.kind())
	}
	switch {
	case head.Exploration != nil:
		comparison.explorations(base.Exploration, head.Exploration, &options)
	case head.File != nil:
		options.Paired = options.Paired || head.File.Pairing != "" && head.File.Pairing == base.File.Pairing
		if err := comparison.files(&base, &head, &options); err != nil {
			return nil, err
		}
	}
	if comparison.Pairs == 0 {
		reason := "neither holds any"
		if len(comparison.Unmatched) > 0 {
			reason = comparison.Unmatched[0].Strategy + ": " + comparison.Unmatched[0].Reason
		}
		return nil, fmt.Errorf("%s and %s have nothing in common: %s", base.Name, head.Name, reason)
	}
	return comparison, nil
}

// add appends a row of the pair.
func (c *Comparison) add(p *pair, row Row) {
	row.Strategy = p.label
	row.Setting = p.setting
	row.Advisory = row.Advisory || p.baseline && row.Kind == Sample
	c.Rows = append(c.Rows, row)
}

// invalid adds a row that says why a side passes nothing.
func (c *Comparison) invalid(p *pair, detail string, args ...any) {
	c.add(p, Row{Figure: "validity", Kind: Exact, Verdict: Invalid, Detail: fmt.Sprintf(detail, args...)})
}

// interrupted notes which of the two sides were.
func (c *Comparison) interrupted(base, head bool, text string) {
	if base {
		c.Notes = append(c.Notes, c.Base+" "+text)
	}
	if head {
		c.Notes = append(c.Notes, c.Head+" "+text)
	}
}

func (c *Comparison) unmatched(strategy, format string, args ...any) {
	c.Unmatched = collect.Union(c.Unmatched, Unmatched{Strategy: strategy, Reason: fmt.Sprintf(format, args...)})
}

// Tolerance is by how much an exact figure may become worse.
type Tolerance struct {
	// By is an amount in the figure's unit, or percent of the base.
	By float64
	// Percent is set if it is the latter.
	Percent bool
}

// allows reports whether a worsening is tolerated.
func (t Tolerance) allows(base, worsening float64) bool {
	by := t.By
	if t.Percent {
		by *= max(base, -base) / 100
	}
	return worsening <= by*(1+1e-12) // 5 % of 217.6 is not below itself
}

func (t Tolerance) String() string {
	if t.Percent {
		return fmt.Sprintf("%g %%", t.By)
	}
	return fmt.Sprintf("%g", t.By)
}

// summary of labels for a line, the first few by name.
func someOf(names []string) string {
	const most = 4
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
