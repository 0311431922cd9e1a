package strategytest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/strategies"
)

// Failures runs the suite and returns what it has against the strategy, one text
// for each check that fails. It does not fail t: it is for tests of limiters that
// are meant to be wrong. Checks that a store is missing for are left out.
func Failures(t testing.TB, meta *strategies.Meta, stores ...Stores) []string {
	t.Helper()
	if len(stores) == 0 {
		stores = []Stores{embeddedStores(t, meta)}
	}
	var out []string
	for _, s := range stores {
		for _, check := range checks {
			if recorder := observe(t, func(tb testing.TB) { check.run(tb, meta, s) }); recorder.Failed() {
				out = append(out, check.name+": "+recorder.text())
			}
		}
	}
	return out
}

// recorder is a testing.TB that writes down what would have become of a test.
type recorder struct {
	testing.TB // for its context and its unexported part
	mu         sync.Mutex
	log        strings.Builder
	failed     bool
	skipped    bool
	cleanups   []func()
}

// observe runs f as a test of its own would run, and leaves it behind as failed if a call of
// the strategy does not return.
func observe(t testing.TB, f func(testing.TB)) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, c := range slices.Backward(r.cleanups) {
				c()
			}
		}()
		f(r)
	}()
	for seen, since := int64(-1), clock.Nano(); ; {
		select {
		case <-done:
			return r
		case <-time.After(stuckAfter / 20):
		}
		if n := signsOfLife.Load(); n != seen {
			seen = n
			since = clock.Nano()
		}
		if clock.Nano()-since < int64(stuckAfter) {
			continue
		}
		for _, goroutine := range stacks.All() {
			if calls, ok := goroutine.Called("strategytest.(*book).try"); ok {
				r.Errorf("a request has not returned for %v: it stands at %s", stuckAfter, goroutine.Where(calls))
				return r
			}
		}
		since = clock.Nano()
	}
}

// stuckAfter is how long no request may begin or end, and nothing be waited for, before one
// that is under way counts as stuck.
var stuckAfter = 20 * time.Second

// signsOfLife counts the requests that have begun and ended, and waits.
var signsOfLife atomic.Int64

// text is what was written down.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimSpace(r.log.String())
}

func (r *recorder) write(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.WriteString(strings.TrimRight(text, "\n") + "\n")
}

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Helper()                      {}
func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Log(args ...any)              { r.write(fmt.Sprintln(args...)) }
func (r *recorder) Logf(text string, a ...any)   { r.write(fmt.Sprintf(text, a...)) }
func (r *recorder) Error(args ...any)            { r.Log(args...); r.Fail() }
func (r *recorder) Errorf(text string, a ...any) { r.Logf(text, a...); r.Fail() }
func (r *recorder) FailNow()                     { r.Fail(); runtime.Goexit() }
func (r *recorder) Fatal(args ...any)            { r.Log(args...); r.FailNow() }
func (r *recorder) Fatalf(text string, a ...any) { r.Logf(text, a...); r.FailNow() }
func (r *recorder) Skip(args ...any)             { r.Log(args...); r.SkipNow() }
func (r *recorder) Skipf(text string, a ...any)  { r.Logf(text, a...); r.SkipNow() }
func (r *recorder) SkipNow()                     { r.skipped = true; runtime.Goexit() }

// Failed implements [testing.TB].
func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool { return r.skipped }
