package sched

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/kit/stacks"
)

// Config of a scheduler. The zero value is useful except for Start.
type Config struct {
	// Start is the first moment of virtual time.
	Start time.Time
	// SplitReplies makes a store operation two steps, its effect and its reply.
	// It is needed wherever callers crash or replies get lost, wherever units
	// are given back, and wherever callers of one instance share memory that
	// they change after a command.
	SplitReplies bool
	// Travel, if not nil, is how long the request of a store operation takes to
	// arrive at the store; a plain pipeline's travels with its first command. Under
	// Simulate, latencies are asked for on arrival, so that a store's queue sees
	// requests in the order in which they arrive and not in which they were sent.
	Travel Latency
	// Observe, if not nil, is told of every step. The event is valid until it returns.
	Observe func(*Event)
	// Interrupt, if not nil, is asked before every step of Simulate whether to
	// return.
	Interrupt func() bool
	// Beat, if not nil, counts whenever an actor goes on.
	Beat *Beat
}

// Beat shows to another goroutine whether actors go on.
type Beat struct{ n atomic.Uint64 }

// Count is how often an actor has gone on.
func (b *Beat) Count() uint64 { return b.n.Load() }

// goesOn is called on the actor's goroutine.
func (a *Actor) goesOn() {
	if beat := a.scheduler.cfg.Beat; beat != nil {
		beat.n.Add(1)
	}
}

// Outcome is what became of an operation.
type Outcome uint8

// The outcomes.
const (
	Happened Outcome = iota // with the error in the event, if any, as its own answer
	Failed                  // the actor was told so; a failed Reply is a lost one
	Killed                  // the actor died at the operation, which did not happen
	Repeated                // the operation happened once more; see [Scheduler.Repeat]
)

// Event is one step of an actor.
type Event struct {
	Since   time.Duration // from the start of virtual time
	Actor   *Actor
	Op      *Op
	Outcome Outcome
	Err     error
}

// Scheduler holds actors and virtual time. It is used from one goroutine.
type Scheduler struct {
	cfg     Config
	start   int64         // nanoseconds since 1970
	since   time.Duration // from the start to the present moment
	actors  []*Actor      // alive, by ID
	made    int
	running *Actor
	// readClock is set once the step that was taken last has read a clock.
	readClock atomic.Bool
	syncs     []func(now time.Time)
	queue     *queue // set by the first Simulate
	event     Event  // that Observe is shown
	// If runs follow each other, those of this run, and those of earlier ones
	// that may be used again.
	reused  bool
	members []*Actor
	spare   []*Actor
	idle    []*worker // that run no actor
	// stepped counts steps, and touched changes of what was made in an earlier one. locks
	// are the numbers of what was changed so in this run, opened how many were made outside
	// of all steps, and woken the actors whose jobs were woken.
	stepped, touched uint64
	locks, woken     []int
	opened           int

	pass func(duration time.Duration)

	// switches has every actor that parks switch to the scheduler, even if it is the next one to go on.
	switches bool
	foreign  atomic.Bool
	goid     uint64
}

// New makes a scheduler without actors.
func New(cfg Config) *Scheduler {
	makeRoom()
	return &Scheduler{cfg: cfg, start: cfg.Start.UnixNano(), goid: stacks.Current()}
}

// SplitReplies has [Config.SplitReplies] set from the next run on.
func (s *Scheduler) SplitReplies() { s.cfg.SplitReplies = true }

// OnPass has f called by [Scheduler.Simulate] before virtual time moves on by duration, and with
// 0 after each step: so that goroutines which are no actors live through it.
func (s *Scheduler) OnPass(f func(duration time.Duration)) { s.pass = f }

// Now is the present moment of virtual time.
func (s *Scheduler) Now() time.Time { return s.cfg.Start.Add(s.since) }

// Nano is the present moment in nanoseconds since 1970, and Since since the start.
func (s *Scheduler) Nano() int64 { return s.start + int64(s.since) }

// Since is the time from the start to the present moment.
func (s *Scheduler) Since() time.Duration { return s.since }

// Go makes an actor that will run body. It runs nothing yet: its first step
// takes it to its first operation. Actors may make further actors.
func (s *Scheduler) Go(name string, body func(ctx context.Context)) *Actor {
	return s.add(newActor(s, name, body))
}

func (s *Scheduler) add(actor *Actor) *Actor {
	actor.ID = s.made
	s.made++
	s.actors = append(s.actors, actor)
	if s.reused {
		s.members = append(s.members, actor)
	}
	if s.queue != nil {
		s.queue.park(actor)
	}
	return actor
}

// OnSync has f called before every store operation, and by [Scheduler.Sync], so
// that a store can be brought up to the present moment.
func (s *Scheduler) OnSync(f func(now time.Time)) { s.syncs = append(s.syncs, f) }

// Sync brings the stores up to the present moment. It is for those who look into
// a store from outside of all actors.
func (s *Scheduler) Sync() {
	for _, f := range s.syncs {
		f(s.Now())
	}
}

// Step lets the operation that the actor is parked at happen, and runs it on to the next.
// It panics if the actor is not ready.
func (s *Scheduler) Step(actor *Actor) {
	if !actor.Ready() {
		panic("sched: stepped an actor that is not ready: " + actor.String())
	}
	if !actor.op.pending() { // the others are noted with their result
		s.note(actor, &actor.op, Happened, nil)
	}
	s.resume(actor)
}

// Fail has the store operation that the actor is parked at answer err without
// happening. At a Reply, the operation has happened and its reply is lost. It
// panics at anything else, and if err is nil.
func (s *Scheduler) Fail(actor *Actor, err error) {
	if actor.done || !actor.op.Store() || err == nil {
		panic("sched: nothing to fail: " + actor.String())
	}
	s.note(actor, &actor.op, Failed, err)
	actor.fail = err
	s.resume(actor)
}

// Repeat has the Redis operation whose reply the actor is parked at happen once more,
// as it does when a client library gets no reply and sends it again. The actor stays
// parked at the reply, which is now that of the repetition. Of a plain pipeline
// everything is repeated, in one step. It panics at anything else.
func (s *Scheduler) Repeat(actor *Actor) {
	if actor.done || actor.op.Kind != Reply || actor.op.kind == SQL {
		panic("sched: nothing to repeat: " + actor.String())
	}
	actor.again = true
	s.resume(actor)
}

// Kill ends the actor where it is, as if its process had died: the operation that it is
// parked at does not happen, none of its error handling runs, and no deferred
// function of it reaches a store. A mutex that a deferred function unlocks does
// become free; one for which that is not true stays locked.
func (s *Scheduler) Kill(actor *Actor) {
	if actor.done {
		return
	}
	s.note(actor, &actor.op, Killed, nil)
	actor.dying = true
	s.stepped++
	actor.enter()
	defer actor.leave()
	actor.done = actor.worker == nil || actor.advance()
}

// Close kills all actors and ends the coroutines that have run them. A scheduler must be closed.
func (s *Scheduler) Close() {
	s.cfg.Observe = nil
	s.killAll()
	for _, worker := range s.idle {
		worker.stop()
	}
	s.idle = nil
}

func (s *Scheduler) killAll() {
	for len(s.actors) > 0 {
		s.Kill(s.actors[0])
	}
}

// Reset kills all actors and begins a fresh run at the same start. Whatever was
// made for the run before it, actors above all, must not be used any more,
// except clocks: these show the new run's time.
func (s *Scheduler) Reset() {
	observe := s.cfg.Observe
	s.cfg.Observe = nil
	s.killAll()
	s.cfg.Observe = observe
	s.reused = true
	s.spare = append(s.spare, s.members...)
	s.members = s.members[:0]
	s.syncs = s.syncs[:0]
	s.locks = s.locks[:0]
	s.woken = s.woken[:0]
	s.opened = 0
	s.since = 0
	s.made = 0
	s.queue = nil
}

// Advance moves virtual time forward by duration.
func (s *Scheduler) Advance(duration time.Duration) {
	if duration < 0 {
		panic("sched: time does not run backwards")
	}
	s.moveTo(s.Now().Add(duration))
}

// moveTo sets the present moment.
func (s *Scheduler) moveTo(t time.Time) {
	since := t.Sub(s.cfg.Start)
	s.passes(since - s.since)
	s.since = since
}

func (s *Scheduler) passes(duration time.Duration) {
	if s.pass != nil {
		s.pass(duration)
	}
}

// ReadClock reports whether the actor that was stepped last has read a clock in that step, or has begun to sleep.
func (s *Scheduler) ReadClock() bool { return s.readClock.Load() }

// NextDeadline is the earliest moment at which an actor that is not ready now
// becomes ready by the passing of time alone.
func (s *Scheduler) NextDeadline() (time.Time, bool) {
	var first time.Time
	for _, actor := range s.actors {
		if u := actor.op.Until; !u.IsZero() && !actor.Ready() && (first.IsZero() || u.Before(first)) {
			first = u
		}
	}
	return first, !first.IsZero()
}

func (s *Scheduler) resume(actor *Actor) {
	if actor.frozen {
		panic("sched: " + actor.Name + " is frozen")
	}
	s.stepped++
	s.readClock.Store(false)
	actor.enter()
	defer actor.leave()
	actor.done = actor.advance()
}

func (a *Actor) enter() {
	if a.scheduler.running != nil {
		panic("sched: " + a.Name + " was stepped while " + a.scheduler.running.Name + " was running")
	}
	a.scheduler.running = a
}

// leave is deferred, so that a panic of the strategy leaves a usable scheduler.
func (a *Actor) leave() {
	scheduler := a.scheduler
	scheduler.running = nil
	if a.done {
		if i, ok := slices.BinarySearchFunc(scheduler.actors, a.ID, func(actor *Actor, id int) int {
			return actor.ID - id
		}); ok {
			scheduler.actors = slices.Delete(scheduler.actors, i, i+1)
		}
		if mutex := a.op.mutex; mutex != nil {
			mutex.promote() // it may have been the one whose turn it was
		}
		return
	}
	if a.queued {
		a.queued = false
	} else if scheduler.queue != nil {
		scheduler.queue.park(a)
	}
}

func (s *Scheduler) note(actor *Actor, op *Op, outcome Outcome, err error) {
	if s.cfg.Observe != nil {
		s.event.Since = s.since
		s.event.Actor = actor
		s.event.Op = op
		s.event.Outcome = outcome
		s.event.Err = err
		s.cfg.Observe(&s.event)
	}
}

// StuckError says that actors wait for something that cannot come.
type StuckError struct {
	// Waiting lists who waits for what.
	Waiting []string
}

// Error implements error.
func (e *StuckError) Error() string {
	return fmt.Sprintf("deadlock: no actor can go on (%s)", strings.Join(e.Waiting, "; "))
}

func (s *Scheduler) stuck() error {
	stuckError := &StuckError{}
	for _, actor := range s.actors {
		if actor.job == nil || actor.op.Kind != Idle {
			stuckError.Waiting = append(stuckError.Waiting, actor.String())
		}
	}
	return stuckError
}

// settled reports whether all callers are done and all jobs are idle with
// nothing to do.
func (s *Scheduler) settled() bool {
	for _, actor := range s.actors {
		if actor.job == nil || actor.op.Kind != Idle || actor.Ready() {
			return false
		}
	}
	return true
}

// touch notes that a mutex or an event that was made before this step has changed, or has
// decided how an actor goes on.
func (s *Scheduler) touch(made uint64, number int) {
	if made != s.stepped {
		s.touched++
		if s.counts() {
			s.locks = append(s.locks, number)
		}
	}
}

// counts reports whether there are few steps in a run: then all can be noted.
func (s *Scheduler) counts() bool { return s.reused && s.queue == nil }

// numbered is the number of a mutex or an event that is made now.
func (s *Scheduler) numbered() int {
	if s.running != nil {
		return 0
	}
	s.opened++
	return s.opened
}

// Marks say how far a run has come.
type Marks struct{ locks, woken, made int }

// Marks are those of this moment.
func (s *Scheduler) Marks() Marks { return Marks{len(s.locks), len(s.woken), s.made} }

// Between is what actors have done to each other since then, other than by a store: the
// numbers of mutexes and events that were made in an earlier step and have changed or decided
// how an actor goes on, those
// of the actors whose jobs were woken, awake or not, and whether actors were made. A mutex or
// an event that was made outside of all steps has the same number, from 1, in all runs that
// begin the same; any other has 0.
func (s *Scheduler) Between(marks Marks) (locks, woken []int, made bool) {
	return s.locks[marks.locks:], s.woken[marks.woken:], s.made != marks.made
}
