package harness

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/isolate"
	"github.com/quotabench/quotabench/internal/stacks"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// DefaultDecisionTimeout is how long a decision may take where nothing else is said.
// Clients of stores give up a dial after 5 s and a read after 3: a decision that waits
// for a store that is away ends with an error of its own before that.
const DefaultDecisionTimeout = 10 * time.Second

// The bounds of [Plan.DecisionTimeout].
const (
	MinDecisionTimeout = 10 * time.Millisecond
	MaxDecisionTimeout = time.Hour
)

// CheckDecisionTimeout reports a time-out of decisions that is out of bounds.
func CheckDecisionTimeout(d time.Duration) error {
	if d < MinDecisionTimeout || d > MaxDecisionTimeout {
		return fmt.Errorf("a time-out of decisions of %v: give %v to %v", d, MinDecisionTimeout, MaxDecisionTimeout)
	}
	return nil
}

// Grace is how long a call may go on after its deadline, when its context was
// cancelled, before it is given up: half of the deadline.
func Grace(deadline time.Duration) time.Duration { return deadline / 2 }

// leastOnce is how long a call may take at least that is made once: it may make tables.
const leastOnce = time.Second

// Once is the deadline of a call that is made once, such as Open, where decisions have
// that one: a second at least. 0 stays 0.
func Once(deadline time.Duration) time.Duration {
	if deadline == 0 {
		return 0
	}
	return max(deadline, leastOnce)
}

// PanicError says that a strategy has panicked.
type PanicError struct {
	// Where it happened: the name of a caller or a job, or what was done with an
	// instance.
	Where string
	Value any
	Stack []byte
}

// Error is one line; the stack is apart.
func (e *PanicError) Error() string {
	return fmt.Sprintf("the strategy panics in %s: %s", e.Where, strings.Join(strings.Fields(fmt.Sprint(e.Value)), " "))
}

// HungError says that a call of a strategy did not return.
type HungError struct {
	// Where it happened, as in [PanicError].
	Where string
	// At is the strategy's innermost function, with file, line and what it waits for.
	At string
	// After is how long was waited for it.
	After time.Duration
	// Stack of the goroutine.
	Stack []byte
}

// Error is one line; the stack is apart.
func (e *HungError) Error() string {
	return fmt.Sprintf("the strategy does not return in %s: given up after %v at %s", e.Where, e.After, e.At)
}

// DiedError says that code of a strategy has ended the process that it ran in: a panic on a
// goroutine that the strategy has started, or an error of the Go runtime.
type DiedError = isolate.Death

// ServeIsolated is for programs that search or simulate with Isolate set: they call it
// before anything else, with all strategies registered. If this process was started as the
// child of such a program, it does its task and does not return.
func ServeIsolated() { isolate.Serve() }

// Stack is that of the strategy's panic, of its call that did not return, or of what has
// ended its process; empty for other errors.
func Stack(err error) string {
	var p *PanicError
	var h *HungError
	var d *DiedError
	switch {
	case errors.As(err, &d):
		return d.Stack
	case errors.As(err, &p):
		return string(p.Stack)
	case errors.As(err, &h):
		return string(h.Stack)
	}
	return ""
}

// The findings of a strategy that panicked, and of a call that did not return.
const (
	CodePanicked = "strategy-panicked"
	CodeHung     = "did-not-return"
)

// StrikeFailed adds the finding that an error has ended a run.
func StrikeFailed(run *results.Run, err error) {
	strike := func(code, detail string) { run.Audit.Strike(code, results.StrikesCorrectness, detail) }
	var p *PanicError
	var h *HungError
	var d *DiedError
	switch {
	case errors.As(err, &p), errors.As(err, &d):
		strike(CodePanicked, err.Error())
	case errors.As(err, &h):
		strike(CodeHung, err.Error())
		run.DidNotReturn = max(run.DidNotReturn, 1)
	case stores.ErrorKind(err) == quota.ErrorStore:
		strike("store-failed", "a store failed while the run was prepared or ended: "+err.Error())
	default:
		strike("run-failed", err.Error())
	}
	run.Audit.Reasons[len(run.Audit.Reasons)-1].Stack = Stack(err)
	run.Audit.TimingsValid = false
}

// ask calls a strategy: with a deadline as [Within] does, and without one on the
// caller's goroutine. A panic is a [PanicError].
func ask[T any](ctx context.Context, deadline time.Duration, where string, f func(context.Context) (T, error)) (v T, err error) {
	if deadline > 0 {
		return Within(ctx, deadline, Grace(deadline), where, f)
	}
	defer Caught(where, &err)
	return f(ctx)
}

// Caught is deferred: it turns a panic into a [PanicError].
func Caught(where string, err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Where: where, Value: v, Stack: debug.Stack()}
	}
}

// abortWait is how long a call may go on after the run was ended.
const abortWait = 500 * time.Millisecond

// Within calls f, which calls a strategy, on a goroutine of its own. Its context is
// cancelled after the limit, where that is not 0, and with ctx. f is given up with a
// [HungError] where it does not return within grace after that, or soon with the error of ctx, and then goes on by
// itself: it must change nothing that its caller reads afterwards. A panic of f is a
// [PanicError].
func Within[T any](ctx context.Context, limit, grace time.Duration, where string, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	done, number := make(chan result, 1), make(chan uint64, 1)
	go func() {
		r := result{err: &PanicError{Where: where, Value: "it ended its goroutine"}}
		defer func() { done <- r }()
		defer Caught(where, &r.err)
		number <- stacks.Current()
		r.v, r.err = f(work)
	}()
	id := <-number
	var over <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	var none T
	select {
	case r := <-done:
		return r.v, r.err
	case <-over:
	case <-ctx.Done():
		select {
		case r := <-done:
			return r.v, r.err
		case <-time.After(min(grace, abortWait)):
			return none, ctx.Err()
		}
	}
	cancel()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case r := <-done:
		return r.v, r.err
	case <-t.C:
	}
	g := stacks.All()[id]
	calls, _ := g.Called("harness.Within[...].func1")
	return none, &HungError{Where: where, At: g.Where(calls), After: limit + grace, Stack: []byte(g.Text)}
}
