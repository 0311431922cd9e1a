package foreign

import (
	"runtime/debug"
	"strings"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/virtual/bubble"
)

// world is one bubble of testing/synctest: goroutines with a clock of their own, which
// moves only if all of them wait for it. What it does is asked for from outside,
// over channels that are not the bubble's, so that its time stands still between two
// steps.
type world struct {
	work chan func()
	done chan error    // what the last piece of work ended with
	end  chan struct{} // closed when the bubble is no more
	// failed is what the bubble itself ended with, nil if nothing was wrong.
	failed any
	// mark is in the head of the stack of each goroutine of the bubble.
	mark string
	// root is the goroutine that works.
	root uint64
	// stuck is set if a piece of work has not come back.
	stuck bool
}

// newWorld makes a bubble.
func newWorld() *world {
	w := &world{work: make(chan func()), done: make(chan error), end: make(chan struct{})}
	go func() {
		defer close(w.end)
		defer func() { w.failed = recover() }()
		bubble.Enter(func() {
			w.root, w.mark = stacks.Current(), bubble.Mark() // before work is taken: who gives it reads them while it goes on
			for f := range w.work {
				w.done <- guarded(f)
			}
		})
	}()
	return w
}

// guarded runs f and returns its panic as an error.
func guarded(f func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &engine.PanicError{Where: "a step", Value: value, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

// look is after how long a piece of work is looked at by the wall clock.
const look = 50 * time.Millisecond

// do has the bubble run f. If f does not come back, because a goroutine of the
// strategy's blocks on what the bubble does not see, the error is a
// [guard.HungError] that says where; the bubble is then left alone.
func (w *world) do(patience time.Duration, f func()) error {
	w.work <- f
	timer := time.NewTimer(look)
	defer timer.Stop()
	waited := time.Duration(0)
	last := ""
	same := 0
	for {
		select {
		case err := <-w.done:
			return err
		case <-timer.C:
		}
		waited += look
		timer.Reset(look)
		at, blocked := w.blocked()
		if blocked && at == last {
			same++
		} else {
			last = at
			same = 0
		}
		// A mutex is held by another that waits, too: no patience brings it back.
		if same >= 2 || waited > patience {
			w.stuck = true
			return &guard.HungError{Where: "a bubble of testing/synctest", At: at, After: waited, Stack: []byte(w.stack()),
				Held: w.held()}
		}
	}
}

// blocked says where a goroutine of the bubble waits for what the bubble does not see,
// and whether none of them runs.
func (w *world) blocked() (at string, all bool) {
	all = true
	for _, goroutine := range bubble.Members(w.mark) {
		head, _, _ := strings.Cut(goroutine.Text, "\n")
		if strings.Contains(head, "(durable)") {
			continue
		}
		switch {
		case strings.HasPrefix(goroutine.State, "sync."):
			at = where(goroutine)
		default:
			all = false
			if at == "" {
				at = where(goroutine)
			}
		}
	}
	return at, all && at != ""
}

// held reports whether a goroutine waits for a lock, which another one may hold that waits for the store.
func (w *world) held() bool {
	locked := false
	parked := false
	for _, goroutine := range bubble.Members(w.mark) {
		if _, at := goroutine.Called("foreign.(*Engine).park"); at {
			parked = true
		} else if !strings.Contains(goroutine.State, "(durable)") {
			locked = locked || goroutine.Locked()
		}
	}
	return locked && parked
}

func where(goroutine stacks.Goroutine) string {
	calls, ok := goroutine.Called("engine.(*Client).take", "engine.(*Client).commit", "engine.(*Client).refund")
	if !ok {
		calls = goroutine.Frames()
	}
	return goroutine.Where(calls)
}

func (w *world) stack() string {
	var builder strings.Builder
	for _, goroutine := range bubble.Members(w.mark) {
		builder.WriteString(goroutine.Text + "\n\n")
	}
	return builder.String()
}

// close ends the bubble, in which everything waits. If goroutines are left it has failed:
// no time passes any more, so they wait forever.
func (w *world) close() {
	close(w.work)
	<-w.end
}
