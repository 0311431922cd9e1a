package session

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/results"
)

// Verdict turns what was measured into an exit code.
func Verdict(file *results.File) error {
	if file.Interrupted {
		text := "interrupted: the results so far are written"
		if n := len(file.Runs); n > 0 && file.Runs[n-1].Partial {
			text += ", the last run is marked partial"
		}
		return exit.With(exit.Interrupted, errors.New(text))
	}
	for i := range file.Runs {
		if invalid, ok := errors.AsType[*results.InvalidError](file.Runs[i].Err()); ok && !tooSlow(file, invalid) {
			return exit.With(exit.Failed, fmt.Errorf("%s, round %d: the correctness figures are invalid: %s: %s",
				invalid.Label, file.Runs[i].Repetition, invalid.Reason.Code, invalid.Reason.Detail))
		}
	}
	if err := unkept(file); err != nil {
		return exit.With(exit.Failed, err)
	}
	for i := range file.Runs {
		if err := broken(&file.Runs[i]); err != nil {
			return exit.With(exit.Gate, err)
		}
	}
	return nil
}

// tooSlow reports whether all that is wrong is that the strategy was asked for too little, in a run that chose its
// strategies itself and tells of others. It is not among those to recommend.
func tooSlow(file *results.File, invalid *results.InvalidError) bool {
	crossed := func(run results.Run) bool { return run.Leak.Trials > 0 }
	return file.Considered != nil && invalid.Reason.Code == codes.NeverCrossed && slices.ContainsFunc(file.Runs, crossed)
}

// unkept says how many histories could not be kept, and why the first was not.
func unkept(file *results.File) error {
	n := 0
	why := ""
	for _, run := range file.Runs {
		for _, reason := range run.Audit.Reasons {
			if reason.Code == codes.HistoryNotKept {
				n++
				if n == 1 {
					why = reason.Detail
				}
			}
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s of %d could not be kept: %s", format.Plural(int64(n), "history", "histories"), len(file.Runs),
		why)
}

// broken says which clause the run broke, or its open loop at the common rate.
func broken(run *results.Run) error {
	for _, clause := range run.Guarantee {
		if clause.Verdict == results.Broken {
			return fmt.Errorf("%s broke its declared guarantee in round %d: %s of at most %s allows %s, and the run had %d",
				run.Params.Label, run.Repetition, clause.Property, clause.Formula, format.Units(clause.Bound, "units"),
				clause.Certain)
		}
	}
	if run.Paced != nil {
		return broken(run.Paced)
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
		if row := &rows[i]; row.Verdict == compare.Inconclusive {
			fmt.Fprintf(stderr, "warning: required %s of %s is not decided: %s\n", row.Figure, row.Strategy, row.Detail)
		}
	}
	return Failures(stderr, err, slices.DeleteFunc(rows, func(row compare.Row) bool { return !row.Fails(false) }))
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
		for _, text := range lines {
			fmt.Fprintln(stderr, "fails: "+text)
		}
		lines = []string{fmt.Sprintf("%d figures or gates fail, the first of them %s", len(lines), lines[0])}
	}
	if before != nil {
		lines = append([]string{before.Error()}, lines...)
	}
	return exit.With(exit.Gate, errors.New(strings.Join(lines, "; ")))
}
