package guard

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// Watchdog notices that a strategy blocks outside of a simulated world: on a mutex that
// a parked caller holds, on a channel, or forever. Nothing can go on then, since one
// goroutine runs at a time.
type Watchdog struct {
	// Patience is how long a strategy may do nothing that the world sees, by the wall
	// clock.
	Patience time.Duration
	// Beat counts the steps of the world.
	Beat *sched.Beat
	// Callers are the functions of the runner that call a strategy as a part of one
	// step, and Around those that call it outside of all steps, by the ends of their
	// names.
	Callers, Around []string
	// Driver, if it holds one, is the goroutine that drives the world instead of the
	// one that f is called on; nil for none.
	Driver *atomic.Uint64
}

// lastLooks is how often a goroutine outside of all steps is found at the same place
// before it counts as blocked: there, steps do not show what goes on.
const lastLooks = 4

// abortPatience is the patience once the run is to end.
const abortPatience = time.Second

// Watched calls f, which drives a strategy, on a goroutine of its own, and gives it up
// with a [HungError] if the strategy blocks. f then stays blocked: it must change
// nothing that its caller reads afterwards. A panic of f passes through.
func Watched[T any](ctx context.Context, watchdog Watchdog, f func() T) (T, error) {
	var result struct {
		v       T
		through bool
		panic   any
		stack   []byte
	}
	done := make(chan struct{})
	number := make(chan uint64, 1)
	go func() {
		defer close(done)
		defer func() {
			result.panic = recover()
			if result.panic != nil {
				result.stack = debug.Stack()
			}
		}()
		number <- stacks.Current()
		result.v = f()
		result.through = true
	}()
	if hung := watchdog.wait(ctx, <-number, done); hung != nil {
		var none T
		return none, hung
	}
	switch {
	case result.panic != nil:
		panic(fmt.Sprintf("%v\n%s", result.panic, result.stack))
	case !result.through: // as a test's FailNow ends it
		runtime.Goexit()
	}
	return result.v, nil
}

// wait returns when f is done, or with why it was given up.
func (w *Watchdog) wait(ctx context.Context, driver uint64, done <-chan struct{}) error {
	each := min(max(w.Patience/16, time.Millisecond), 250*time.Millisecond)
	ticker := time.NewTicker(each)
	defer ticker.Stop()
	count := w.Beat.Count()
	looks := 0
	same := 0
	var last string
	for {
		select {
		case <-done:
			return nil
		case <-ticker.C:
		}
		if now := w.Beat.Count(); now != count {
			count = now
			looks = 0
			same = 0
			last = ""
			continue
		}
		patience := w.Patience
		if ctx.Err() != nil {
			patience = min(patience, abortPatience)
		}
		looks++
		if time.Duration(looks)*each < patience {
			continue
		}
		if w.Driver != nil && w.Driver.Load() != 0 {
			driver = w.Driver.Load()
		}
		goroutine, calls, known, held := w.blocked(driver)
		switch {
		case w.Beat.Count() != count:
			continue
		case goroutine.Text != last:
			same = 0
			last = goroutine.Text
		default:
			same++
		}
		if known || len(calls) > 0 && waits(goroutine.State) && same >= lastLooks {
			return &HungError{Where: "virtual time", At: goroutine.Where(calls), After: time.Duration(looks) * each,
				Stack: []byte(goroutine.Text), Held: held}
		}
	}
}

// Deadlocked is the error of a world in which everything waits for what cannot come, as a bubble notices by itself.
func (w *Watchdog) Deadlocked() *HungError {
	goroutine, calls, _, held := w.blocked(w.Driver.Load())
	return &HungError{Where: "virtual time", At: goroutine.Where(calls), Stack: []byte(goroutine.Text), Held: held}
}

// blocked is the goroutine that keeps the others waiting, with the strategy's calls on its stack. known is set if it is
// in one step of the world, and held if it waits for a lock that a parked call may hold.
func (w *Watchdog) blocked(driver uint64) (goroutine stacks.Goroutine, calls []stacks.Frame, known, held bool) {
	all := stacks.All()
	if _, in := all[driver].Called("sched.(*Actor).advance"); in {
		goroutine = running(all, driver)
		calls, known = goroutine.Called(w.Callers...)
		if known && len(calls) > 0 {
			return goroutine, calls, true, goroutine.Locked() && w.parked(all, goroutine)
		}
	} else {
		goroutine = all[driver]
	}
	calls, _ = goroutine.Called(w.Around...)
	return goroutine, calls, false, false
}

// parked reports whether another call of the same world waits for the store.
func (w *Watchdog) parked(all map[uint64]stacks.Goroutine, than stacks.Goroutine) bool {
	for _, goroutine := range all {
		calls, _ := goroutine.Called(w.Callers...)
		if _, parked := goroutine.Called("sched.(*Actor).parkHere"); parked && len(calls) > 0 && goroutine.ID != than.ID &&
			goroutine.Parent == than.Parent {
			return true
		}
	}
	return false
}

// running is the goroutine of the actor that runs. All other actors of the driver are
// parked as coroutines, as the driver is.
func running(all map[uint64]stacks.Goroutine, driver uint64) stacks.Goroutine {
	for _, goroutine := range all {
		if _, actor := goroutine.Called("sched.(*Actor).live"); actor && !strings.HasPrefix(goroutine.State, "coroutine") &&
			goroutine.Parent == driver {
			return goroutine
		}
	}
	return stacks.Goroutine{}
}

// waits reports whether a goroutine in that state can only be woken by another one.
func waits(state string) bool {
	state, _, _ = strings.Cut(state, " (durable)")
	return !slices.Contains([]string{"running", "runnable", "syscall", "IO wait", "coroutine", "preempted"}, state)
}
