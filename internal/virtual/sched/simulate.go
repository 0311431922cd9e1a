package sched

import (
	"errors"
	"math/bits"
	"time"
)

// ErrInterrupted is the error of a simulation that [Config.Interrupt] ended.
var ErrInterrupted = errors.New("the simulation was ended")

// Latency is how long it takes until an actor's operation happens, from the
// moment at which the actor parked there; for a Reply, until the reply arrives.
// It is asked once per operation, in a fixed order, so it may draw from a seeded
// source and keep queues of its own. A Start is asked about too.
type Latency func(actor *Actor, op *Op) time.Duration

// Simulate lets virtual time choose: every operation happens when its latency
// has passed, every sleep ends when it is over, and every wait as soon as it
// can, first come first served. It returns when all callers are done and all
// jobs idle, or at the moment until if that comes first; a further call goes on.
// Errors are a [*StuckError] for a deadlock, and [ErrInterrupted].
func (s *Scheduler) Simulate(until time.Time, latency Latency) error {
	makeMoreRoom()
	if s.queue == nil {
		s.fillQueue(latency)
	}
	q := s.queue
	q.latency = latency
	q.end = q.since(until)
	q.runs = s.pass == nil // what lives through the time that passes does so on this goroutine
	defer func() { q.runs = false }()
	for {
		if s.cfg.Interrupt != nil && s.cfg.Interrupt() {
			return ErrInterrupted
		}
		entry, ok := q.peek()
		if !ok {
			break
		}
		if q.putOff(entry) {
			continue
		}
		if entry.at > q.end {
			if !s.settled() {
				s.Advance(max(q.end-s.since, 0))
			}
			return nil
		}
		if entry.at > s.since {
			if entry.actor.job != nil && entry.actor.op.Kind == Idle && s.settled() {
				return nil // only jobs that are not due yet
			}
			s.passes(entry.at - s.since)
			s.since = entry.at
		}
		if q.without(entry) {
			continue
		}
		q.step(entry.actor)
	}
	if s.settled() {
		return nil
	}
	return s.stuck()
}

// fillQueue makes the queue, with all actors in it.
func (s *Scheduler) fillQueue(latency Latency) {
	s.queue = &queue{scheduler: s, latency: latency}
	for _, actor := range s.actors {
		s.queue.park(actor)
	}
}

// step takes the first actor out of the queue, and has it run or wait.
func (q *queue) step(actor *Actor) {
	q.pop()
	if !actor.Ready() {
		q.await(actor)
		return
	}
	q.scheduler.Step(actor)
	q.scheduler.passes(0)
	q.pollContexts()
}

// without carries out what needs no actor to run: a request that arrives at its store, or
// a command that is answered at once. It reports false for all else.
func (q *queue) without(e *entry) bool {
	actor := e.actor
	scheduler := q.scheduler
	if e.travels {
		q.replace(q.entry(scheduler.since+q.latency(actor, &actor.op), actor, false))
		return true
	}
	if actor.op.Kind != Command || actor.answer == nil || !q.runs || !scheduler.cfg.SplitReplies {
		return false
	}
	answer := actor.answer
	actor.answer = nil // once
	scheduler.Sync()
	err, ok := answer(actor.op.Cmd)
	if !ok {
		return false
	}
	scheduler.note(actor, &actor.op, Happened, err)
	actor.answered = true
	actor.reply = err
	actor.op.Kind = Reply
	actor.op.kind = Command
	actor.parks++
	if actor.op.ctx == nil && len(q.cancellable) == 0 {
		q.replace(q.entry(scheduler.since+q.latency(actor, &actor.op), actor, false))
	} else {
		q.pop()
		q.park(actor)
		q.pollContexts()
	}
	return true
}

// goesOnBy has an actor that has parked go on by itself, if nothing comes before it
// but what needs no actor to run. It reports false if the scheduler has to choose.
// Most callers of a simulation are alone most of the time: to switch to the scheduler and
// back would cost more than what they do.
func (s *Scheduler) goesOnBy(actor *Actor) bool {
	queue := s.queue
	if queue == nil || !queue.runs || s.switches {
		return false
	}
	queue.park(actor)
	actor.queued = true
	queue.pollContexts()
	for {
		if s.cfg.Interrupt != nil && s.cfg.Interrupt() {
			return false
		}
		entry, ok := queue.peek()
		if !ok || entry.at > queue.end {
			return false
		}
		if queue.putOff(entry) {
			continue
		}
		if entry.actor != actor && !entry.travels && entry.actor.answer == nil {
			return false
		}
		if entry.at > s.since {
			if entry.actor.op.Kind == Idle {
				return false // it may be that nothing is left to do
			}
			s.since = entry.at
		}
		if queue.without(entry) {
			continue
		}
		if entry.actor != actor {
			return false
		}
		queue.pop()
		if !actor.Ready() {
			queue.await(actor)
			continue
		}
		if !actor.op.pending() { // as in Step
			s.note(actor, &actor.op, Happened, nil)
		}
		actor.queued = false
		return true
	}
}

type entry struct {
	at    time.Duration // since the start, not negative
	seq   uint64        // breaks ties, so that the order is the order of parking
	actor *Actor
	parks uint32
	// travels is set until the operation arrives at the store.
	travels bool
}

// before is 1 if an entry comes before another, and 0 otherwise. Which of two comes
// first cannot be predicted, so no branch is to depend on it.
func (e *entry) before(o *entry) uint64 {
	_, borrow := bits.Sub64(e.seq, o.seq, 0)
	_, borrow = bits.Sub64(uint64(e.at), uint64(o.at), borrow)
	return borrow
}

// stale reports whether the actor has moved on since the entry was made.
func (e *entry) stale() bool { return e.actor.done || e.actor.parks != e.parks }

// queue is a binary heap of moments at which actors can be stepped.
type queue struct {
	scheduler *Scheduler
	latency   Latency
	end       time.Duration // when Simulate returns
	runs      bool          // Simulate is under way, and actors may go on by themselves
	heap      []entry
	// hole is set if the first entry of the heap is none any more: the next one to
	// enter takes its place, which is half of the work of doing one after the other.
	hole bool
	seq  uint64
	// cancellable are waits that a context can end, which no event announces.
	cancellable []entry
}

// since is a moment as entries have it: comparing them is most of the work, and
// numbers are compared faster.
func (q *queue) since(t time.Time) time.Duration { return t.Sub(q.scheduler.cfg.Start) }

// now is the present moment.
func (q *queue) now() time.Duration { return q.scheduler.since }

// park enters an actor that has just parked.
func (q *queue) park(actor *Actor) {
	switch actor.op.Kind {
	case Sleep:
		q.push(actor.op.Until, actor)
	case Lock, Wait:
		if actor.Ready() {
			q.enter(q.now(), actor, false)
		} else {
			q.await(actor)
		}
	case Idle:
		if actor.Ready() {
			q.enter(q.now(), actor, false)
		} else if !actor.op.Until.IsZero() {
			q.push(actor.op.Until, actor)
		}
	default:
		if latency := q.scheduler.cfg.Travel; latency != nil && actor.op.Kind != Start && actor.op.Kind != Reply &&
			actor.op.Index == 0 {
			q.enter(q.now()+latency(actor, &actor.op), actor, true)
		} else {
			q.enter(q.now()+q.latency(actor, &actor.op), actor, false)
		}
	}
	if ctx := actor.op.ctx; ctx != nil && ctx.Done() != nil {
		q.cancellable = append(q.cancellable, entry{parks: actor.parks, actor: actor})
	}
}

// await leaves an actor to the one that it waits for.
func (q *queue) await(actor *Actor) {
	switch actor.op.Kind {
	case Lock:
		actor.op.mutex.waiters = append(actor.op.mutex.waiters, actor)
	case Wait:
		event := actor.op.event
		if event.waiters == nil {
			event.waiters = event.first[:0]
		}
		event.waiters = append(event.waiters, actor)
	}
}

func (q *queue) pollContexts() {
	if len(q.cancellable) == 0 {
		return
	}
	kept := q.cancellable[:0]
	for _, entry := range q.cancellable {
		switch {
		case entry.stale():
		case entry.actor.op.ctx.Err() != nil:
			q.enter(q.now(), entry.actor, false)
		default:
			kept = append(kept, entry)
		}
	}
	clear(q.cancellable[len(kept):])
	q.cancellable = kept
}

func (q *queue) push(at time.Time, actor *Actor) { q.enter(q.since(at), actor, false) }

func (q *queue) enter(at time.Duration, actor *Actor, travels bool) {
	entry := q.entry(at, actor, travels)
	if q.hole {
		q.hole = false
		q.replace(entry)
		return
	}
	q.heap = append(q.heap, entry)
	entries := q.heap
	i := len(entries) - 1
	for i > 0 {
		up := (i - 1) / 2
		if entry.before(&entries[up]) == 0 {
			break
		}
		entries[i] = entries[up]
		i = up
	}
	entries[i] = entry
}

func (q *queue) entry(at time.Duration, actor *Actor, travels bool) entry {
	q.seq++
	return entry{at: max(at, 0), seq: q.seq, parks: actor.parks, actor: actor, travels: travels}
}

// peek drops stale entries and returns the first live one, which is valid until the heap
// changes.
func (q *queue) peek() (*entry, bool) {
	for {
		if q.hole {
			q.fill()
		}
		if len(q.heap) == 0 {
			return nil, false
		}
		if entry := &q.heap[0]; !entry.stale() {
			return entry, true
		}
		q.pop()
	}
}

// pop drops the first entry, which must be one.
func (q *queue) pop() { q.hole = true }

// fill puts another entry where the first was.
func (q *queue) fill() {
	q.hole = false
	last := len(q.heap) - 1
	e := q.heap[last]
	q.heap[last] = entry{}
	q.heap = q.heap[:last]
	if last > 0 {
		q.replace(e)
	}
}

// replace puts an entry in the place of the first.
func (q *queue) replace(e entry) {
	entries := q.heap
	i := 0
	for {
		low := 2*i + 1
		if low >= len(entries) {
			break
		}
		if r := low + 1; r < len(entries) {
			low += int(entries[r].before(&entries[low]))
		}
		if entries[low].before(&e) == 0 {
			break
		}
		entries[i] = entries[low]
		i = low
	}
	entries[i] = e
}

// Starts takes an actor that has not started to its first operation, and if that is one of
// a store, lets it happen and runs the actor on to the next. It is two calls of
// [Scheduler.Step] without the switch to the scheduler between them.
func (s *Scheduler) Starts(actor *Actor) {
	actor.through = actor.op.Kind == Start
	s.Step(actor)
	actor.through = false
}

// goesThrough has an actor that has parked at its first operation go on by itself.
func (a *Actor) goesThrough() bool {
	if !a.through {
		return false
	}
	a.through = false
	if !a.op.Store() {
		return false
	}
	a.scheduler.stepped++
	return true
}
