package sched

import (
	"errors"

	"github.com/quotabench/quotabench/internal/stacks"
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

// OnActor reports whether it is called on the goroutine of the actor that is
// being stepped.
func (s *Scheduler) OnActor() bool {
	a := s.running
	return a != nil && a.worker != nil && a.worker.goid == stacks.Current()
}
