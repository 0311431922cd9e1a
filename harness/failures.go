package harness

import (
	"cmp"
	"errors"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/internal/trouble/kill"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// Failures counts requests that ended in an error.
type Failures struct {
	// Errors by what they came from.
	Errors results.ErrorKinds
	// Prescribed are those among them that the strategy's source asks for.
	Prescribed results.ErrorKinds
	// Suspect is the first that is not a result of the strategy's.
	Suspect error
}

// Count counts the error of a request.
func (f *Failures) Count(err error) {
	kind := errorKind(err)
	*f.Errors.Of(kind)++
	switch {
	case strategies.IsPrescribed(err):
		*f.Prescribed.Of(kind)++
	case kind != quota.ErrorContention && kind != errorKilled && f.Suspect == nil:
		f.Suspect = err
	}
}

// Add counts those of failures too.
func (f *Failures) Add(failures Failures) {
	f.Errors.Add(failures.Errors)
	f.Prescribed.Add(failures.Prescribed)
	f.Suspect = cmp.Or(f.Suspect, failures.Suspect)
}

// errorKilled is the kind of [results.ErrorKinds.Killed].
const errorKilled quota.ErrorKind = "killed"

// errorKind says what an error of a request came from: by the word of the strategy,
// and else by what the stores know.
func errorKind(err error) quota.ErrorKind {
	switch {
	case errors.Is(err, kill.Err):
		return errorKilled
	case errors.Is(err, strategies.ErrContention):
		return quota.ErrorContention
	}
	return stores.ErrorKind(err)
}

// Counts are what callers counted themselves.
type Counts struct {
	Admitted, Rejected int64
	Failures
	// Degraded decisions are among the first two, and DegradedAdmitted are those of them that were admitted.
	Degraded, DegradedAdmitted int64

	FirstError error
}

// Told counts what a request was told, a decision or the error in its place, and returns what that is to the oracle.
func (c *Counts) Told(dec *quota.Decision, err error) oracle.Outcome {
	switch {
	case err != nil:
		c.Count(err)
		return oracle.Failed
	case dec.Admitted:
		c.Admitted++
		if dec.Degraded {
			c.Degraded++
			c.DegradedAdmitted++
		}
		return oracle.Admitted
	case dec.Degraded:
		c.Rejected++
		c.Degraded++
		return oracle.RejectedDegraded
	}
	c.Rejected++
	return oracle.Rejected
}

// Add counts those of counts too.
func (c *Counts) Add(counts Counts) {
	c.Admitted = c.Admitted + counts.Admitted
	c.Rejected = c.Rejected + counts.Rejected
	c.Degraded = c.Degraded + counts.Degraded
	c.DegradedAdmitted = c.DegradedAdmitted + counts.DegradedAdmitted
	c.Failures.Add(counts.Failures)
}

// record sets the run's counts.
func (c *Counts) record(run *results.Run) {
	run.Admitted = c.Admitted
	run.Rejected = c.Rejected
	run.Errors = c.Errors.Total()
	run.Degraded = c.Degraded
	run.DegradedAdmitted = c.DegradedAdmitted
	run.Issued, run.ErrorKinds = c.Admitted+c.Rejected+run.Errors, c.Errors.OrNil()
}

// ServeIsolated is for programs that search or simulate with Isolate set: they call it
// before anything else, with all strategies registered. If this process was started as the
// child of such a program, it does its task and does not return.
func ServeIsolated() { isolate.Serve() }

// DiscardFailed adds the finding that an error has ended a run.
func DiscardFailed(run *results.Run, err error) {
	discard := func(code, detail string) { run.Audit.Discard(code, codes.DiscardsCorrectness, detail) }
	var panicError *guard.PanicError
	var hungError *guard.HungError
	var death *guard.DiedError
	switch {
	case errors.As(err, &panicError), errors.As(err, &death):
		discard(codes.Panicked, err.Error())
	case errors.As(err, &hungError):
		discard(codes.Hung, err.Error())
		run.DidNotReturn = max(run.DidNotReturn, 1)
	case stores.ErrorKind(err) == quota.ErrorStore:
		discard("store-failed", "a store failed while the run was prepared or ended: "+err.Error())
	default:
		discard("run-failed", err.Error())
	}
	run.Audit.Reasons[len(run.Audit.Reasons)-1].Stack = guard.Stack(err)
}
