package session

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/results"
)

// Verdict turns what was measured into an exit code.
func Verdict(f *results.File) error {
	if f.Interrupted {
		text := "interrupted: the results so far are written"
		if n := len(f.Runs); n > 0 && f.Runs[n-1].Partial {
			text += ", the last run is marked partial"
		}
		return exit.With(exit.Interrupted, errors.New(text))
	}
	for i := range f.Runs {
		if invalid, ok := errors.AsType[*results.InvalidError](f.Runs[i].Err()); ok {
			return exit.With(exit.Failed, fmt.Errorf("%s, round %d: the correctness figures are invalid: %s: %s",
				invalid.Label, f.Runs[i].Repetition, invalid.Reason.Code, invalid.Reason.Detail))
		}
	}
	if err := unkept(f); err != nil {
		return exit.With(exit.Failed, err)
	}
	for i := range f.Runs {
		if err := broken(&f.Runs[i]); err != nil {
			return exit.With(exit.Gate, err)
		}
	}
	return nil
}

// unkept says how many histories could not be kept, and why the first was not.
func unkept(f *results.File) error {
	n := 0
	why := ""
	for _, r := range f.Runs {
		for _, x := range r.Audit.Reasons {
			if x.Code == harness.HistoryNotKept {
				if n++; n == 1 {
					why = x.Detail
				}
			}
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s of %d could not be kept: %s", format.Plural(int64(n), "history", "histories"), len(f.Runs), why)
}

// broken says which clause the run broke, or its open loop at the common rate.
func broken(r *results.Run) error {
	for _, c := range r.Guarantee {
		if c.Verdict == results.Broken {
			return fmt.Errorf("%s broke its declared guarantee in round %d: %s of at most %s allows %s, and the run had %d",
				r.Params.Label, r.Repetition, c.Property, c.Formula, format.Units(c.Bound, "units"), c.Certain)
		}
	}
	if r.Paced != nil {
		return broken(r.Paced)
	}
	return nil
}

// Gated is the outcome of a command after its gates were checked against what it found: err,
// or which of them fail. Gates that could not be decided are said to be.
func Gated(stderr io.Writer, err error, rows []compare.Row) error {
	var e *exit.Error
	if err != nil && (!errors.As(err, &e) || e.Code != exit.Gate) {
		return err // what was measured counts for nothing
	}
	for i := range rows {
		if r := &rows[i]; r.Verdict == compare.Inconclusive {
			fmt.Fprintf(stderr, "warning: required %s of %s is not decided: %s\n", r.Figure, r.Strategy, r.Detail)
		}
	}
	return Failures(stderr, err, slices.DeleteFunc(rows, func(r compare.Row) bool { return !r.Fails(false) }))
}

// Failures is the error of gates and figures that fail, each of which it names, after
// what failed before. A long list is on standard error.
func Failures(stderr io.Writer, before error, rows []compare.Row) error {
	if len(rows) == 0 {
		return before
	}
	const most = 3
	lines := tables.FailureLines(rows)
	if len(lines) > most {
		for _, l := range lines {
			fmt.Fprintln(stderr, "fails: "+l)
		}
		lines = []string{fmt.Sprintf("%d figures or gates fail, the first of them %s", len(lines), lines[0])}
	}
	if before != nil {
		lines = append([]string{before.Error()}, lines...)
	}
	return exit.With(exit.Gate, errors.New(strings.Join(lines, "; ")))
}
