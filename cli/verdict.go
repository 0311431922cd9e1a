package cli

import (
	"context"
	"errors"
	"fmt"

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
	for i := range f.Runs {
		if err := broken(&f.Runs[i]); err != nil {
			return fail(ExitGate, err)
		}
	}
	return nil
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
