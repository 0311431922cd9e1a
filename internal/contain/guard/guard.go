// Package guard calls code that is not under the program's control: a strategy that
// panics, does not return or ends its process becomes an error that says where.
package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/internal/kit/stacks"
)

// Grace is how long a call may go on after its deadline, when its context was
// cancelled, before it is given up: half of the deadline.
func Grace(deadline time.Duration) time.Duration { return deadline / 2 }

// LeastOnce is how long a call may take at least that is made once: it may make tables.
const LeastOnce = time.Second

// Once is the deadline of a call that is made once, such as Open, if decisions have
// that one: a second at least. 0 stays 0.
func Once(deadline time.Duration) time.Duration {
	if deadline == 0 {
		return 0
	}
	return max(deadline, LeastOnce)
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
	// Held is set if it waits for a lock while another call, which may hold that, waits for the store in virtual time:
	// such a limiter may be right.
	Held bool
}

// Error is one line; the stack is apart.
func (e *HungError) Error() string {
	if e.Held {
		return fmt.Sprintf("a call waits for a lock at %s, and a call that waits for the store may hold it: virtual time "+
			"cannot pass so, and nothing is said of the limiter (run measures it; if its lock is a channel, explore searches "+
			"it with Meta.Foreign set)", e.At)
	}
	after := "everything waits"
	if e.After > 0 {
		after = fmt.Sprintf("given up after %v", e.After)
	}
	return fmt.Sprintf("the strategy does not return in %s: %s at %s", e.Where, after, e.At)
}

// DiedError says that code of a strategy has ended the process that it ran in: a panic on a
// goroutine that the strategy has started, or an error of the Go runtime.
type DiedError = isolate.Death

// Stack is that of the strategy's panic, of its call that did not return, or of what has
// ended its process; empty for other errors.
func Stack(err error) string {
	var panicError *PanicError
	var hungError *HungError
	var death *DiedError
	switch {
	case errors.As(err, &death):
		return death.Stack
	case errors.As(err, &panicError):
		return string(panicError.Stack)
	case errors.As(err, &hungError):
		return string(hungError.Stack)
	}
	return ""
}

// Ask calls a strategy: with a deadline as [Within] does, and without one on the
// caller's goroutine. A panic is a [PanicError].
func Ask[T any](ctx context.Context, deadline time.Duration, where string,
	f func(context.Context) (T, error)) (v T, err error) {
	if deadline > 0 {
		return Within(ctx, deadline, Grace(deadline), where, f)
	}
	defer Caught(where, &err)
	return f(ctx)
}

// Caught is deferred: it turns a panic into a [PanicError].
func Caught(where string, err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Where: where, Value: value, Stack: debug.Stack()}
	}
}

// abortWait is how long a call may go on after the run was ended.
const abortWait = 500 * time.Millisecond

// Within calls f, which calls a strategy, on a goroutine of its own. Its context is
// cancelled after the limit, if that is not 0, and with ctx. f is given up with a
// [HungError] if it does not return within grace after that, or soon with the error of ctx, and then goes on by
// itself: it must change nothing that its caller reads afterwards. A panic of f is a
// [PanicError].
func Within[T any](ctx context.Context, limit, grace time.Duration, where string,
	f func(context.Context) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan result, 1)
	number := make(chan uint64, 1)
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
		over = time.After(limit)
	}
	var none T
	select {
	case result := <-done:
		return result.v, result.err
	case <-over:
	case <-ctx.Done():
		select {
		case result := <-done:
			return result.v, result.err
		case <-time.After(min(grace, abortWait)):
			return none, ctx.Err()
		}
	}
	cancel()
	select {
	case result := <-done:
		return result.v, result.err
	case <-time.After(grace):
	}
	goroutine := stacks.All()[id]
	calls, _ := goroutine.Called("guard.Within[...].func1")
	return none, &HungError{Where: where, At: goroutine.Where(calls), After: limit + grace, Stack: []byte(goroutine.Text)}
}
