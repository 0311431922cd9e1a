package sched

import (
	"context"
	"errors"
	"runtime/debug"

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
func (s *Scheduler) OnOwn() bool { return !onActor() && s.goid != stacks.Current() }

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
// actor, and keeps that.
func (a *Actor) astray() bool {
	if onActor() && a.scheduler.running == a {
		return false
	}
	a.scheduler.foreign.Store(true)
	return true
}

// markActor marks the calling goroutine as one that runs actors.
//
// Of all settings of a goroutine, the one that [debug.SetPanicOnFault] changes is the only one that can be read, that
// goroutines which it starts do not inherit, and that nearly nobody uses. A search asks for it with each command: to
// look for a function among the callers took a third of its time.
func markActor() { debug.SetPanicOnFault(true) }

// onActor reports whether it is called on a goroutine that runs the body of an actor,
// its own or one that it calls. All but that of the running actor are parked.
func onActor() bool {
	marked := debug.SetPanicOnFault(true)
	debug.SetPanicOnFault(marked)
	return marked
}
