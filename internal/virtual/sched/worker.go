package sched

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// worker is a coroutine that runs the bodies of actors, one after the other: a search makes
// and ends actors by the million, and a coroutine that has run before has grown the stack
// that it needs.
type worker struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	actor *Actor // whose body runs, nil between two
}

// takeWorker returns a worker that has nothing to do.
func (s *Scheduler) takeWorker() *worker {
	if last := len(s.idle) - 1; last >= 0 {
		worker := s.idle[last]
		s.idle = s.idle[:last]
		return worker
	}
	w := &worker{}
	w.next, w.stop = iter.Pull(func(yield func(struct{}) bool) {
		w.yield = yield
		markActor()
		for {
			w.actor.live()
			w.actor = nil
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return w
}

// unwind is thrown through the code of a killed actor. It is not an error value,
// since a caller that has crashed must not get to handle one.
type unwind struct{}

// Panic is what a step panics with if the actor's body does.
type Panic struct {
	Actor string
	Value any
	// Stack of the actor.
	Stack []byte
}

// Error implements error, in one line.
func (p *Panic) Error() string { return fmt.Sprintf("%s panics: %v", p.Actor, p.Value) }

// live runs an actor's body, which a kill cuts short.
func (a *Actor) live() {
	defer func() {
		switch value := recover(); value.(type) {
		case nil, unwind:
		default:
			panic(&Panic{Actor: a.Name, Value: value, Stack: debug.Stack()})
		}
	}()
	a.goesOn()
	a.body(a.ctx)
}

// advance runs an actor until it parks or ends, and reports whether it has ended.
// If its body panics, so does advance.
func (a *Actor) advance() (ended bool) {
	worker := a.worker
	if worker == nil {
		worker = a.scheduler.takeWorker()
		worker.actor, a.worker = a, worker
	}
	_, alive := worker.next()
	if alive && worker.actor != nil {
		return false
	}
	a.worker = nil
	a.body = nil
	if alive {
		a.scheduler.idle = append(a.scheduler.idle, worker)
	}
	return true
}
