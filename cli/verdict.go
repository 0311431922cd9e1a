package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// verdict turns what was measured into an exit code.
func verdict(f results.File) error {
	if f.Interrupted {
		text := "interrupted: the results so far are written"
		if n := len(f.Runs); n > 0 && f.Runs[n-1].Partial {
			text += ", the last run is marked partial"
		}
		return fail(ExitInterrupted, errors.New(text))
	}
	for i := range f.Runs {
		var invalid *results.InvalidError
		if errors.As(f.Runs[i].Err(), &invalid) {
			return fail(ExitFailed, fmt.Errorf("%s, round %d: the correctness figures are invalid: %s: %s",
				invalid.Label, f.Runs[i].Repetition, invalid.Reason.Code, invalid.Reason.Detail))
		}
	}
	if err := unkept(f); err != nil {
		return fail(ExitFailed, err)
	}
	for i := range f.Runs {
		if err := broken(&f.Runs[i]); err != nil {
			return fail(ExitGate, err)
		}
	}
	return nil
}

// unkept says how many histories could not be kept, and why the first was not.
func unkept(f results.File) error {
	n, why := 0, ""
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
			return fmt.Errorf("%s broke its declared guarantee in round %d: %s of at most %s allows %d units, and %d were measured",
				r.Params.Label, r.Repetition, c.Property, c.Formula, c.Bound, c.Certain)
		}
	}
	if r.Paced != nil {
		return broken(r.Paced)
	}
	return nil
}

// errNothing says that there was nothing to write yet.
var errNothing = errors.New("interrupted before anything was measured; nothing was written")

// interruptedOr is err, unless it merely shows that the user pressed Ctrl-C.
func interruptedOr(ctx context.Context, err error, code int) error {
	if ctx.Err() != nil {
		return fail(ExitInterrupted, errNothing)
	}
	return fail(code, err)
}
