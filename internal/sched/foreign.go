package sched

import (
	"errors"
	"runtime"
)

// ErrForeign is what an operation answers that uses the context of an actor
// outside of that actor: from a goroutine that its code has started, or while
// another one runs. It has not happened.
var ErrForeign = errors.New("sched: a caller's context was used on a goroutine of the strategy's own")

// Foreign reports whether an operation has answered [ErrForeign] in any run.
func (s *Scheduler) Foreign() bool { return s.foreign.Load() }

// OnScheduler reports whether it is called on the goroutine that made the
// scheduler while no actor is being stepped.
func (s *Scheduler) OnScheduler() bool { return s.running == nil && s.goid == goroutine() }

// OnActor reports whether it is called on the goroutine of the actor that is
// being stepped.
func (s *Scheduler) OnActor() bool {
	a := s.running
	return a != nil && a.worker != nil && a.worker.goid == goroutine()
}

// goroutine is the number of the calling goroutine, from the head of its stack's
// text: "goroutine 7 [running]".
func goroutine() (id uint64) {
	var buf [40]byte
	n := runtime.Stack(buf[:], false)
	for _, c := range buf[len("goroutine "):n] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uint64(c-'0')
	}
	return id
}
