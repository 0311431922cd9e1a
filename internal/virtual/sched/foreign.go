package sched

import (
	"context"
	"errors"
	"reflect"
	"runtime"

	"github.com/quotabench/quotabench/internal/kit/stacks"
)

// ErrForeign is what an operation answers that uses the context of an actor
// outside of that actor: from a goroutine that its code has started, or while
// another one runs. It has not happened.
var ErrForeign = errors.New("sched: a caller's context was used on a goroutine of the strategy's own")

// Foreign reports whether an operation has answered [ErrForeign] in any run.
func (s *Scheduler) Foreign() bool { return s.foreign.Load() }

// OnScheduler reports whether it is called on the goroutine that made the
// scheduler while no actor is being stepped.
func (s *Scheduler) OnScheduler() bool { return s.running == nil && s.goid == stacks.Current() }

// OnOwn reports whether it is called on a goroutine that neither made the scheduler nor runs
// an actor: one that the code under test has started. It reads nothing that is written later.
func (s *Scheduler) OnOwn() bool { return !within(live, s.cfg.Within) && s.goid != stacks.Current() }

// OnActor reports whether it is called on the goroutine of the actor that is
// being stepped.
func (s *Scheduler) OnActor() bool {
	return s.running != nil && onActor()
}

// Adopt gives a context that belongs to no actor the one that is being stepped, if it
// is called on that one's goroutine.
func (s *Scheduler) Adopt(ctx context.Context) context.Context {
	if From(ctx) != nil || !s.OnActor() {
		return ctx
	}
	return context.WithValue(ctx, actorKey{}, s.running)
}

// astray reports whether an operation under the actor's context does not come from the
// actor, and keeps that. known is set if it comes from the goroutine of some actor.
func (a *Actor) astray(known bool) bool {
	if a.scheduler.running == a && (known || !a.dying && !a.scheduler.Careful || onActor()) {
		return false
	}
	a.scheduler.foreign.Store(true)
	return true
}

// onActor reports whether it is called on a goroutine that runs the body of an actor,
// its own or one that it calls. All but that of the running actor are parked.
func onActor() bool { return within(live, live) }

// within reports whether a function that begins at a or b is among the callers.
func within(a, b uintptr) bool {
	var calls [64]uintptr
	for skip := 2; ; skip += len(calls) {
		n := runtime.Callers(skip, calls[:])
		for i := n - 1; i >= 0; i-- {
			if f := runtime.FuncForPC(calls[i] - 1); f != nil && (f.Entry() == a || f.Entry() == b) {
				return true
			}
		}
		if n < len(calls) {
			return false
		}
	}
}

// live is where [Actor.live] begins.
var live = reflect.ValueOf((*Actor).live).Pointer()
