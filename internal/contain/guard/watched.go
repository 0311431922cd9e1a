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
func Watched[T any](ctx context.Context, w Watchdog, f func() T) (T, error) {
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
	if hung := w.wait(ctx, <-number, done); hung != nil {
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
	t := time.NewTicker(each)
	defer t.Stop()
	count := w.Beat.Count()
	looks := 0
	same := 0
	var last string
	for {
		select {
		case <-done:
			return nil
		case <-t.C:
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
		if looks++; time.Duration(looks)*each < patience {
			continue
		}
		if w.Driver != nil && w.Driver.Load() != 0 {
			driver = w.Driver.Load()
		}
		g, calls, known, held := w.blocked(driver)
		switch {
		case w.Beat.Count() != count:
			continue
		case g.Text != last:
			same = 0
			last = g.Text
		default:
			same++
		}
		if known || len(calls) > 0 && waits(g.State) && same >= lastLooks {
			return &HungError{Where: "virtual time", At: g.Where(calls), After: time.Duration(looks) * each, Stack: []byte(g.Text), Held: held}
		}
	}
}

// Deadlocked is the error of a world in which everything waits for what cannot come, as a bubble notices by itself.
func (w *Watchdog) Deadlocked() *HungError {
	g, calls, _, held := w.blocked(w.Driver.Load())
	return &HungError{Where: "virtual time", At: g.Where(calls), Stack: []byte(g.Text), Held: held}
}

// blocked is the goroutine that keeps the others waiting, with the strategy's calls on
// its stack. known is set if it is in one step of the world, and held if it waits for a lock that a parked call may hold.
func (w *Watchdog) blocked(driver uint64) (g stacks.Goroutine, calls []stacks.Frame, known, held bool) {
	all := stacks.All()
	if _, in := all[driver].Called("sched.(*Actor).advance"); in {
		g = running(all, driver)
		calls, known = g.Called(w.Callers...)
		if known && len(calls) > 0 {
			return g, calls, true, g.Locked() && w.parked(all, g)
		}
	} else {
		g = all[driver]
	}
	calls, _ = g.Called(w.Around...)
	return g, calls, false, false
}

// parked reports whether another call of the same world waits for the store.
func (w *Watchdog) parked(all map[uint64]stacks.Goroutine, than stacks.Goroutine) bool {
	for _, g := range all {
		calls, _ := g.Called(w.Callers...)
		if _, parked := g.Called("sched.(*Actor).parkHere"); parked && len(calls) > 0 && g.ID != than.ID && g.Parent == than.Parent {
			return true
		}
	}
	return false
}

// running is the goroutine of the actor that runs. All other actors of the driver are
// parked as coroutines, as the driver is.
func running(all map[uint64]stacks.Goroutine, driver uint64) stacks.Goroutine {
	for _, g := range all {
		if _, actor := g.Called("sched.(*Actor).live"); actor && !strings.HasPrefix(g.State, "coroutine") && g.Parent == driver {
			return g
		}
	}
	return stacks.Goroutine{}
}

// waits reports whether a goroutine in that state can only be woken by another one.
func waits(state string) bool {
	state, _, _ = strings.Cut(state, " (durable)")
	return !slices.Contains([]string{"running", "runnable", "syscall", "IO wait", "coroutine", "preempted"}, state)
}
