package results_test

import (
	"errors"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
)

// TestAFindingIsOneLine: what several errors say stands behind semicolons.
func TestAFindingIsOneLine(t *testing.T) {
	var a results.Audit
	a.Discard("run-failed", codes.DiscardsCorrectness,
		errors.Join(errors.New("open incr-expire:\n\tno connection"), errors.New("close it: refused")).Error())
	if got, want := a.Reasons[0].Detail, "open incr-expire: no connection; close it: refused"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
