package harness

import (
	"errors"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/internal/guard"
	"github.com/quotabench/quotabench/internal/isolate"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// The default and the bounds of [Plan.DecisionTimeout].
const (
	// DefaultDecisionTimeout is how long a decision may take where nothing else is said.
	// Clients of stores give up a dial after 5 s and a read after 3: a decision that waits
	// for a store that is away ends with an error of its own before that.
	DefaultDecisionTimeout = 10 * time.Second
	MinDecisionTimeout     = 10 * time.Millisecond
	MaxDecisionTimeout     = time.Hour
)

// CheckDecisionTimeout reports a time-out of decisions that is out of bounds.
func CheckDecisionTimeout(d time.Duration) error {
	if d < MinDecisionTimeout || d > MaxDecisionTimeout {
		return fmt.Errorf("a time-out of decisions of %v: give %v to %v", d, MinDecisionTimeout, MaxDecisionTimeout)
	}
	return nil
}

// ServeIsolated is for programs that search or simulate with Isolate set: they call it
// before anything else, with all strategies registered. If this process was started as the
// child of such a program, it does its task and does not return.
func ServeIsolated() { isolate.Serve() }

// The findings of a strategy that panicked, and of a call that did not return.
const (
	CodePanicked = "strategy-panicked"
	CodeHung     = "did-not-return"
)

// DiscardFailed adds the finding that an error has ended a run.
func DiscardFailed(run *results.Run, err error) {
	discard := func(code, detail string) { run.Audit.Discard(code, results.DiscardsCorrectness, detail) }
	var p *guard.PanicError
	var h *guard.HungError
	var d *guard.DiedError
	switch {
	case errors.As(err, &p), errors.As(err, &d):
		discard(CodePanicked, err.Error())
	case errors.As(err, &h):
		discard(CodeHung, err.Error())
		run.DidNotReturn = max(run.DidNotReturn, 1)
	case stores.ErrorKind(err) == quota.ErrorStore:
		discard("store-failed", "a store failed while the run was prepared or ended: "+err.Error())
	default:
		discard("run-failed", err.Error())
	}
	run.Audit.Reasons[len(run.Audit.Reasons)-1].Stack = guard.Stack(err)
	run.Audit.TimingsValid = false
}
