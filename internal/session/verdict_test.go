package session

import (
	"errors"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/exit"
	"github.com/quotabench/quotabench/results"
)

// TestHistoriesNotKept: a run whose histories are missing says so, and fails.
func TestHistoriesNotKept(t *testing.T) {
	full := results.Run{Audit: results.Audit{Valid: true, Reasons: []results.Reason{{Code: harness.HistoryNotKept, Discards: results.DiscardsNothing, Detail: "no space left on device"}}}}
	err := Verdict(&results.File{Runs: []results.Run{{Audit: results.Audit{Valid: true}}, full, full}})
	var e *exit.Error
	if !errors.As(err, &e) || e.Code != exit.Failed || err.Error() != "2 histories of 3 could not be kept: no space left on device" {
		t.Errorf("got %v", err)
	}
}
