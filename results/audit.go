package results

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
)

// Audit is the run's judgement of itself.
type Audit struct {
	// Valid is set if the correctness figures count.
	Valid bool `json:"valid"`
	// Reasons holds every finding.
	Reasons []Reason `json:"reasons"`
}

// Reason is one finding of the audit.
type Reason struct {
	// Code is its short name, e.g. "history-overflow".
	Code string `json:"code"`
	// Discards is what the finding takes back or marks.
	Discards string `json:"discards" jsonschema:"enum=correctness,enum=round,enum=disturbed,enum=timings,enum=response,enum=note"`
	// Detail is one line for people.
	Detail string `json:"detail"`
	// Short is the detail without what follows from it, where there is little room; empty if nothing follows.
	Short string `json:"short,omitempty"`
	// Stack is that of the strategy's goroutine which has panicked, or whose call did
	// not return; empty otherwise.
	Stack string `json:"stack,omitempty"`
}

// Discard adds a finding, whose detail becomes one line. One about correctness takes those figures back.
func (a *Audit) Discard(code, discards, detail string) {
	a.Add(Reason{Code: code, Discards: discards, Detail: format.OneLine(detail)})
}

// Add adds a finding. One about correctness takes those figures back.
func (a *Audit) Add(reason Reason) {
	a.Reasons = append(a.Reasons, reason)
	if reason.Discards == codes.DiscardsCorrectness {
		a.Valid = false
	}
}

// Observe adds a finding of two parts: what was observed, and what follows from it.
func (a *Audit) Observe(code, discards, what, follows string) {
	a.Add(Reason{Code: code, Discards: discards, Detail: what + ": " + follows, Short: what})
}

// Brief is the detail without what follows from it.
func (r *Reason) Brief() string { return cmp.Or(r.Short, r.Detail) }

// Soften makes a note of the findings of that code, which take nothing back any more.
func (a *Audit) Soften(code string) {
	a.Valid = true
	for i := range a.Reasons {
		reason := &a.Reasons[i]
		if reason.Code == code {
			reason.Discards = codes.DiscardsNothing
		}
		a.Valid = a.Valid && reason.Discards != codes.DiscardsCorrectness
	}
}

// Has reports whether there is a finding of that code.
func (a *Audit) Has(code string) bool {
	return slices.ContainsFunc(a.Reasons, func(reason Reason) bool { return reason.Code == code })
}

// Discarded is the first finding that takes the correctness figures back, in words; "" if none does.
func (a *Audit) Discarded() string {
	for _, reason := range a.Reasons {
		if reason.Discards == codes.DiscardsCorrectness {
			return reason.Detail
		}
	}
	return ""
}

// Disturbed reports whether a finding marks the timings.
func (a *Audit) Disturbed() bool {
	return a.discards(codes.Disturbs) || a.discards(codes.DisturbsTimings)
}

// Planned reports whether the round happened as planned, so that its timings enter those of all rounds.
func (a *Audit) Planned() bool {
	return !a.discards(codes.DiscardsRound) && !a.Has(codes.StoreRestarted)
}

// discards reports whether a finding takes that back.
func (a *Audit) discards(what string) bool {
	return slices.ContainsFunc(a.Reasons, func(reason Reason) bool { return reason.Discards == what })
}

// InvalidError says that the correctness figures of a run do not count.
type InvalidError struct {
	// Label is the strategy as the command line takes it.
	Label string
	// Reason is the first finding that discards correctness.
	Reason Reason
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s: the run is invalid: %s (%s)", e.Label, e.Reason.Detail, e.Reason.Code)
}

// Invalid returns an [*InvalidError] about the first run whose correctness figures
// do not count, or nil.
func Invalid(runs []Run) error {
	for i := range runs {
		if err := runs[i].Err(); err != nil {
			return err
		}
	}
	return nil
}

// Err is an [*InvalidError] if the correctness figures of the run, or of its
// open loop at the common rate, do not count, and nil otherwise.
func (r *Run) Err() error {
	switch {
	case r.Audit.Valid && r.Paced != nil:
		return r.Paced.Err()
	case r.Audit.Valid:
		return nil
	}
	for _, reason := range r.Audit.Reasons {
		if reason.Discards == codes.DiscardsCorrectness {
			return &InvalidError{Label: r.Params.Label, Reason: reason}
		}
	}
	return &InvalidError{Label: r.Params.Label, Reason: Reason{Code: "unknown", Detail: "its audit gives no reason"}}
}
