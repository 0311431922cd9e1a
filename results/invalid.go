package results

import "fmt"

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

// Err is an [*InvalidError] where the correctness figures of the run, or of its
// open loop at the common rate, do not count, and nil elsewhere.
func (r *Run) Err() error {
	switch {
	case r.Audit.Valid && r.Paced != nil:
		return r.Paced.Err()
	case r.Audit.Valid:
		return nil
	}
	for _, reason := range r.Audit.Reasons {
		if reason.Discards == DiscardsCorrectness {
			return &InvalidError{Label: r.Params.Label, Reason: reason}
		}
	}
	return &InvalidError{Label: r.Params.Label, Reason: Reason{Code: "unknown", Detail: "its audit gives no reason"}}
}
