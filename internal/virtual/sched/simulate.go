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
type Latency func(a *Actor, op *Op) time.Duration

// Simulate lets virtual time choose: every operation happens when its latency
// has passed, every sleep ends when it is over, and every wait as soon as it
// can, first come first served. It returns when all callers are done and all
// jobs idle, or at the moment until if that comes first; a further call goes on.
// Errors are a [*StuckError] for a deadlock, and [ErrInterrupted].
func (s *Scheduler) Simulate(until time.Time, latency Latency) error {
	makeMoreRoom()
	if s.queue == nil {
		s.queue = &queue{s: s, latency: latency}
		for _, a := range s.actors {
			s.queue.park(a)
		}
	}
	q := s.queue
	q.latency, q.end = latency, q.since(until)
	q.runs = s.pass == nil // what lives through the time that passes does so on this goroutine
	defer func() { q.runs = false }()
	for {
		if s.cfg.Interrupt != nil && s.cfg.Interrupt() {
			return ErrInterrupted
		}
		e, ok := q.peek()
		if !ok {
			break
		}
		if q.stands(e) {
			continue
		}
		if e.at > q.end {
			if s.settled() {
				return nil
			}
			s.Advance(max(q.end-s.since, 0))
			return nil
		}
		if e.at > s.since {
			if e.actor.job != nil && e.actor.op.Kind == Idle && s.settled() {
				return nil // only jobs that are not due yet
			}
			s.passes(e.at - s.since)
			s.since = e.at
		}
		if q.without(e) {
			continue
		}
		a := e.actor
		q.pop()
		if !a.Ready() {
			q.await(a)
			continue
		}
		s.Step(a)
		s.passes(0)
		q.pollContexts()
	}
	if s.settled() {
		return nil
	}
	return s.stuck()
}

// without carries out what needs no actor to run: a request that arrives at its store, or
// a command that is answered at once. It reports false for all else.
func (q *queue) without(e *entry) bool {
	a := e.actor
	s := q.s
	if e.travels {
		q.replace(q.entry(s.since+q.latency(a, &a.op), a, false))
		return true
	}
	if a.op.Kind != Command || a.answer == nil || !q.runs || !s.cfg.SplitReplies {
		return false
	}
	answer := a.answer
	a.answer = nil // once
	s.Sync()
	err, ok := answer(a.op.Cmd)
	if !ok {
		return false
	}
	s.note(a, &a.op, Happened, err)
	a.answered = true
	a.reply = err
	a.op.Kind = Reply
	a.op.of = Command
	a.parks++
	if a.op.ctx == nil && len(q.cancellable) == 0 {
		q.replace(q.entry(s.since+q.latency(a, &a.op), a, false))
	} else {
		q.pop()
		q.park(a)
		q.pollContexts()
	}
	return true
}

// goesOnBy has an actor that has parked go on by itself, if nothing comes before it
// but what needs no actor to run. It reports false if the scheduler has to choose.
// Most callers of a simulation are alone most of the time: to switch to the scheduler and
// back would cost more than what they do.
func (s *Scheduler) goesOnBy(a *Actor) bool {
	q := s.queue
	if q == nil || !q.runs || s.Careful {
		return false
	}
	q.park(a)
	a.queued = true
	q.pollContexts()
	for {
		if s.cfg.Interrupt != nil && s.cfg.Interrupt() {
			return false
		}
		e, ok := q.peek()
		if !ok || e.at > q.end {
			return false
		}
		if q.stands(e) {
			continue
		}
		if e.actor != a && !e.travels && e.actor.answer == nil {
			return false
		}
		if e.at > s.since {
			if e.actor.op.Kind == Idle {
				return false // it may be that nothing is left to do
			}
			s.since = e.at
		}
		if q.without(e) {
			continue
		}
		if e.actor != a {
			return false
		}
		q.pop()
		if !a.Ready() {
			q.await(a)
			continue
		}
		if !a.op.Store() || a.op.Kind == Reply { // as in Step
			s.note(a, &a.op, Happened, nil)
		}
		a.queued = false
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
	s       *Scheduler
	latency Latency
	end     time.Duration // when Simulate returns
	runs    bool          // Simulate is under way, and actors may go on by themselves
	heap    []entry
	// hole is set if the first entry of the heap is none any more: the next one to
	// enter takes its place, which is half of the work of doing one after the other.
	hole bool
	seq  uint64
	// cancellable are waits that a context can end, which no event announces.
	cancellable []entry
}

// since is a moment as entries have it: comparing them is most of the work, and
// numbers are compared faster.
func (q *queue) since(t time.Time) time.Duration { return t.Sub(q.s.cfg.Start) }

// now is the present moment.
func (q *queue) now() time.Duration { return q.s.since }

// park enters an actor that has just parked.
func (q *queue) park(a *Actor) {
	switch a.op.Kind {
	case Sleep:
		q.push(a.op.Until, a)
	case Lock, Wait:
		if a.Ready() {
			q.enter(q.now(), a, false)
		} else {
			q.await(a)
		}
	case Idle:
		if a.Ready() {
			q.enter(q.now(), a, false)
		} else if !a.op.Until.IsZero() {
			q.push(a.op.Until, a)
		}
	default:
		if t := q.s.cfg.Travel; t != nil && a.op.Kind != Start && a.op.Kind != Reply && a.op.Index == 0 {
			q.enter(q.now()+t(a, &a.op), a, true)
		} else {
			q.enter(q.now()+q.latency(a, &a.op), a, false)
		}
	}
	if c := a.op.ctx; c != nil && c.Done() != nil {
		q.cancellable = append(q.cancellable, entry{parks: a.parks, actor: a})
	}
}

// await leaves an actor to the one that it waits for.
func (q *queue) await(a *Actor) {
	switch a.op.Kind {
	case Lock:
		a.op.mutex.waiters = append(a.op.mutex.waiters, a)
	case Wait:
		e := a.op.event
		if e.waiters == nil {
			e.waiters = e.first[:0]
		}
		e.waiters = append(e.waiters, a)
	}
}

func (q *queue) pollContexts() {
	if len(q.cancellable) == 0 {
		return
	}
	kept := q.cancellable[:0]
	for _, e := range q.cancellable {
		switch {
		case e.stale():
		case e.actor.op.ctx.Err() != nil:
			q.enter(q.now(), e.actor, false)
		default:
			kept = append(kept, e)
		}
	}
	clear(q.cancellable[len(kept):])
	q.cancellable = kept
}

func (q *queue) push(at time.Time, a *Actor) { q.enter(q.since(at), a, false) }

func (q *queue) enter(at time.Duration, a *Actor, travels bool) {
	e := q.entry(at, a, travels)
	if q.hole {
		q.hole = false
		q.replace(e)
		return
	}
	q.heap = append(q.heap, e)
	h := q.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if e.before(&h[up]) == 0 {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

func (q *queue) entry(at time.Duration, a *Actor, travels bool) entry {
	q.seq++
	return entry{at: max(at, 0), seq: q.seq, parks: a.parks, actor: a, travels: travels}
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
		if e := &q.heap[0]; !e.stale() {
			return e, true
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
	h := q.heap
	i := 0
	for {
		low := 2*i + 1
		if low >= len(h) {
			break
		}
		if r := low + 1; r < len(h) {
			low += int(h[r].before(&h[low]))
		}
		if h[low].before(&e) == 0 {
			break
		}
		h[i] = h[low]
		i = low
	}
	h[i] = e
}

// Starts takes an actor that has not started to its first operation, and if that is one of
// a store, lets it happen and runs the actor on to the next. It is two calls of
// [Scheduler.Step] without the switch to the scheduler between them.
func (s *Scheduler) Starts(a *Actor) {
	a.through = a.op.Kind == Start
	s.Step(a)
	a.through = false
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
	a.s.stepped++
	return true
}
