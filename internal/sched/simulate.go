package sched

import "time"

// Latency is how long it takes until an actor's operation happens, from the
// moment at which the actor parked there; for a Reply, until the reply arrives.
// It is asked once per operation, in a fixed order, so it may draw from a seeded
// source and keep queues of its own. A Start is asked about too.
type Latency func(a *Actor, op Op) time.Duration

// Simulate lets virtual time choose: every operation happens when its latency
// has passed, every sleep ends when it is over, and every wait as soon as it
// can, first come first served. It returns when all callers are done and all
// jobs idle, or at the moment until if that comes first; a further call goes on.
// Errors are a [*StuckError] for a deadlock.
func (s *Scheduler) Simulate(until time.Time, latency Latency) error {
	if s.queue == nil {
		s.queue = &queue{s: s, latency: latency}
		for _, a := range s.actors {
			s.queue.park(a)
		}
	}
	q := s.queue
	q.latency = latency
	for {
		e, ok := q.peek()
		if !ok {
			break
		}
		if e.at.After(until) {
			if s.settled() {
				return nil
			}
			s.now = later(s.now, until)
			return nil
		}
		if e.actor.job != nil && e.actor.op.Kind == Idle && e.at.After(s.now) && s.settled() {
			return nil // only jobs that are not due yet
		}
		q.pop()
		s.now = later(s.now, e.at)
		if !e.actor.Ready() {
			q.await(e.actor)
			continue
		}
		s.Step(e.actor)
		q.pollContexts()
	}
	if s.settled() {
		return nil
	}
	return s.stuck()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

type entry struct {
	at    time.Time
	seq   uint64 // breaks ties, so that the order is the order of parking
	parks uint64
	actor *Actor
}

func (e entry) before(o entry) bool {
	if c := e.at.Compare(o.at); c != 0 {
		return c < 0
	}
	return e.seq < o.seq
}

// stale reports whether the actor has moved on since the entry was made.
func (e entry) stale() bool { return e.actor.done || e.actor.parks != e.parks }

// queue is a binary heap of moments at which actors can be stepped.
type queue struct {
	s       *Scheduler
	latency Latency
	heap    []entry
	seq     uint64
	// cancellable are waits that a context can end, of which nobody tells us.
	cancellable []entry
}

// park enters an actor that has just parked.
func (q *queue) park(a *Actor) {
	switch a.op.Kind {
	case Sleep:
		q.push(a.op.Until, a)
	case Lock, Wait:
		if a.Ready() {
			q.push(q.s.now, a)
		} else {
			q.await(a)
		}
	case Idle:
		if a.Ready() {
			q.push(q.s.now, a)
		} else if !a.op.Until.IsZero() {
			q.push(a.op.Until, a)
		}
	default:
		q.push(q.s.now.Add(q.latency(a, a.op)), a)
	}
	if c := a.op.ctx; c != nil && c.Done() != nil {
		q.cancellable = append(q.cancellable, entry{parks: a.parks, actor: a})
	}
}

// await leaves an actor to whoever it waits for.
func (q *queue) await(a *Actor) {
	switch a.op.Kind {
	case Lock:
		a.op.mutex.waiters = append(a.op.mutex.waiters, a)
	case Wait:
		a.op.event.waiters = append(a.op.event.waiters, a)
	}
}

func (q *queue) pollContexts() {
	kept := q.cancellable[:0]
	for _, e := range q.cancellable {
		switch {
		case e.stale():
		case e.actor.op.ctx.Err() != nil:
			q.push(q.s.now, e.actor)
		default:
			kept = append(kept, e)
		}
	}
	clear(q.cancellable[len(kept):])
	q.cancellable = kept
}

func (q *queue) push(at time.Time, a *Actor) {
	q.seq++
	q.heap = append(q.heap, entry{at: at, seq: q.seq, parks: a.parks, actor: a})
	h := q.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// peek drops stale entries and returns the first live one.
func (q *queue) peek() (entry, bool) {
	for len(q.heap) > 0 {
		if e := q.heap[0]; !e.stale() {
			return e, true
		}
		q.pop()
	}
	return entry{}, false
}

func (q *queue) pop() {
	h := q.heap
	last := len(h) - 1
	h[0], h[last] = h[last], entry{}
	h = h[:last]
	q.heap = h
	for i := 0; ; {
		low := 2*i + 1
		if low >= len(h) {
			return
		}
		if r := low + 1; r < len(h) && h[r].before(h[low]) {
			low = r
		}
		if !h[low].before(h[i]) {
			return
		}
		h[i], h[low] = h[low], h[i]
		i = low
	}
}
