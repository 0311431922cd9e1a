package sched

import (
	"context"
	"errors"
)

// Actor is one caller, or one job, as a coroutine.
type Actor struct {
	// ID counts the scheduler's actors from 0, in the order of their making.
	ID   int
	Name string

	scheduler *Scheduler
	body      func(ctx context.Context)
	worker    *worker // that runs the body, nil before the first step
	ctx       context.Context

	op Op
	// answer carries out the command that it is parked at; nil if the actor has to do so
	// itself. answered is set once that is done, with the reply's error.
	answer   Answer
	answered bool
	reply    error
	queued   bool   // its entry was made by itself
	fail     error  // what the operation it is parked at answers instead of happening
	parks    uint32 // how often it has parked; tells a stale queue entry from a live one
	job      *JobState
	past     *JobState // of an earlier run, to be used again
	process  *Process  // that its call or its job is within; nil for none
	inside   bool      // an operation is happening: what it does underneath is part of it
	again    bool      // the operation whose reply it is parked at shall happen once more
	dying    bool
	ended    error // what its call within a process ends with, if it died in it
	cleanups int   // operations that its deferred functions asked for since it was killed
	through  bool  // the first operation happens in the step that leads to it
	done     bool
	// frozen actors are not stepped any more in this run; see [Scheduler.Restore].
	frozen, wasReady bool
}

type actorKey struct{}

// actorContext is the context that an actor begins with.
type actorContext struct {
	context.Context
	actor *Actor
}

// Value implements [context.Context].
func (c *actorContext) Value(key any) any {
	if key == (actorKey{}) {
		return c.actor
	}
	return c.Context.Value(key)
}

// From returns the actor that ctx belongs to, or nil.
func From(ctx context.Context) *Actor {
	if c, ok := ctx.(*actorContext); ok {
		return c.actor
	}
	actor, _ := ctx.Value(actorKey{}).(*Actor)
	return actor
}

func newActor(scheduler *Scheduler, name string, body func(ctx context.Context)) *Actor {
	var actor *Actor
	if n := len(scheduler.spare); n > 0 {
		actor = scheduler.spare[n-1]
		scheduler.spare = scheduler.spare[:n-1]
		past := actor.past
		if actor.job != nil {
			past = actor.job
		}
		*actor = Actor{ctx: actor.ctx, past: past}
	} else {
		actor = &Actor{}
		actor.ctx = &actorContext{context.Background(), actor}
	}
	actor.Name = name
	actor.scheduler = scheduler
	actor.body = body // and it is parked at its start
	return actor
}

// Kind is that of the operation that the actor is parked at.
func (a *Actor) Kind() Kind { return a.op.Kind }

// Op is the operation that the actor is parked at.
func (a *Actor) Op() Op { return a.op }

// Done reports whether the actor has returned or was killed.
func (a *Actor) Done() bool { return a.done }

// Job is the state of an actor that runs a job, and nil for callers.
func (a *Actor) Job() *JobState { return a.job }

// Ready reports whether the actor can be stepped now.
func (a *Actor) Ready() bool {
	if a.done {
		return false
	}
	if a.frozen {
		return a.wasReady
	}
	if a.op.ctx != nil && a.op.ctx.Err() != nil {
		return true
	}
	switch a.op.Kind {
	case Sleep:
		return !a.scheduler.Now().Before(a.op.Until)
	case Lock:
		return a.op.mutex.holder == nil
	case Wait:
		return a.op.event.set
	case Idle:
		return a.job.ready(a.scheduler.Now())
	default:
		return true
	}
}

// String is the actor's name and what it is about to do.
func (a *Actor) String() string {
	if a.done {
		return a.Name + ": done"
	}
	return a.Name + ": " + a.op.String()
}

// park hands control to the scheduler until the actor is stepped. A non-nil
// result is the error that the operation shall answer without happening.
func (a *Actor) park(op *Op) error {
	if a.astray() {
		return ErrForeign
	}
	return a.parkHere(op)
}

// parkHere is park, on the actor's own goroutine.
func (a *Actor) parkHere(op *Op) error {
	if a.dying {
		// Code that is being unwound may clean up, as a client gives back its connection.
		a.cleanups++
		if a.cleanups <= mostCleanups {
			return errOver
		}
		panic(unwind{})
	}
	if op != &a.op {
		a.op = *op
	}
	a.parks++
	if !a.goesThrough() && !a.scheduler.goesOnBy(a) {
		a.worker.yield(struct{}{})
		if a.dying {
			if a.op.Kind == Idle {
				return nil // nothing of the strategy's is under way
			}
			if a.op.Cmd != nil && a.op.Cmd.Name() == "unwatch" {
				return errOver // the client cleans up already, and gives its connection back after that
			}
			panic(unwind{})
		}
	}
	a.goesOn()
	err := a.fail
	a.fail = nil
	return err
}

// mostCleanups bounds how many operations a killed actor's deferred functions are answered.
const mostCleanups = 100

// errOver is the answer to operations after the end of a schedule.
var errOver = errors.New("the schedule is over")

// perform parks at a store operation, lets it happen, and parks once more at its
// reply if the scheduler splits the two; the commands of a plain pipeline
// share the reply of the last. It reports whether the error is the scheduler's
// and not the operation's own. What a client library would send again is repeat,
// which writes its replies into the same commands.
// answer may be nil. The actor must not be [Actor.astray].
func (a *Actor) perform(op *Op, answer Answer, effect, repeat func() error) (err error, injected bool) {
	a.answer = answer
	a.answered = false
	if err := a.parkHere(op); err != nil {
		return err, true
	}
	if a.answered { // and it has its reply
		return a.reply, false
	}
	a.scheduler.Sync()
	err = a.happen(effect)
	a.scheduler.note(a, &a.op, Happened, err)
	if !a.scheduler.cfg.SplitReplies || op.Index != op.Of-1 {
		return err, false
	}
	for {
		a.op.Kind, a.op.kind = Reply, op.Kind
		if lost := a.parkHere(&a.op); lost != nil {
			return lost, true
		}
		if !a.again {
			return err, false
		}
		a.again = false
		a.scheduler.Sync()
		err = a.happen(repeat)
		a.op = *op
		a.scheduler.note(a, &a.op, Repeated, err)
	}
}

func (a *Actor) happen(effect func() error) error {
	a.inside = true
	defer func() { a.inside = false }()
	return effect()
}
