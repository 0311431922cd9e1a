package sched

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Process is an instance of an application, within which actors make calls and run jobs. It
// can stand still, as a process that is stopped, and end.
type Process struct {
	scheduler *Scheduler
	// It stands still between these moments, since the start.
	from, until time.Duration
	// ended is what calls within it end with, while they are ended.
	ended error
}

// NewProcess makes one that goes on.
func (s *Scheduler) NewProcess() *Process { return &Process{scheduler: s} }

// Pause has the process stand still for duration from now on, and returns how long it then does so
// without a break. What its actors have sent to a store happens all the same, and they go on
// with the replies afterwards.
func (p *Process) Pause(duration time.Duration) time.Duration {
	if p.until <= p.scheduler.since {
		p.from = p.scheduler.since
	}
	p.until = max(p.until, p.scheduler.since+duration)
	return p.until - p.from
}

// Crash ends the process: calls within it end with err, and its jobs for good. What their
// actors are parked at does not happen.
func (p *Process) Crash(err error) {
	p.ended = err
	for _, actor := range slices.Clone(p.scheduler.actors) {
		if actor.process == p {
			p.scheduler.Kill(actor)
		}
	}
	p.ended = nil
}

// Die ends the call that the actor makes within a process with err, as if the actor had a process
// of its own that was killed. It is called on the actor's goroutine, and does not return.
func (a *Actor) Die(err error) {
	a.dying = true
	a.ended = err
	panic(unwind{})
}

// Do has an actor make a call within the process, as soon as that does not stand still.
func (p *Process) Do(ctx context.Context, call func() error) (err error) {
	actor := From(ctx)
	actor.process = p
	defer func() {
		actor.process = nil
		ended := cmp.Or(actor.ended, p.ended)
		if ended == nil {
			return
		}
		if value := recover(); value != nil && value != any(unwind{}) {
			panic(value)
		}
		actor.dying = false
		actor.cleanups = 0
		err = ended
		actor.ended = nil
	}()
	if err := p.scheduler.Clock(0).Sleep(ctx, p.until-p.scheduler.since); err != nil {
		return err
	}
	return call()
}

// putOff moves the first entry to when the process of its actor goes on, if that stands still
// when the entry is due. It reports whether it has moved it.
func (q *queue) putOff(first *entry) bool {
	actor := first.actor
	process := actor.process
	if process == nil || process.until <= first.at {
		return false // it does not stand still then
	}
	if actor.op.pending() {
		return false // what was sent to a store happens all the same
	}
	q.replace(q.entry(process.until, actor, false))
	return true
}
