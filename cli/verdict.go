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
		return fail(ExitInterrupted, errors.New("interrupted: the results so far are written, the last run is marked partial"))
	}
	for _, r := range f.Runs {
		if !r.Audit.Valid {
			return fail(ExitFailed, fmt.Errorf("%s, round %d: the correctness figures are invalid: %s", r.Params.Label, r.Repetition, firstStrike(r.Audit)))
		}
	}
	for _, r := range f.Runs {
		for _, c := range r.Guarantee {
			if c.Verdict == results.Violated {
				return fail(ExitGate, fmt.Errorf("%s broke its declared guarantee in round %d: %s of at most %s allows %d units, and %d were measured",
					r.Params.Label, r.Repetition, c.Property, c.Formula, c.Bound, c.Certain))
			}
		}
	}
	return nil
}

func firstStrike(a results.Audit) string {
	for _, r := range a.Reasons {
		if r.Strikes == results.StrikesCorrectness {
			return r.Code + ": " + r.Detail
		}
	}
	return "no reason recorded"
}

// interruptedOr is err, unless it merely shows that the user pressed Ctrl-C.
func interruptedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fail(ExitInterrupted, errors.New("interrupted before anything was measured; nothing was written"))
	}
	return fail(ExitUsage, err)
}
