package combine

import (
	"context"
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// queue holds the callers of an account who have not returned yet, in the order of arrival.
// It holds those who were answered, too: an exploration sees what a parked caller will read.
type queue struct {
	callers []*caller
	busy    bool // one of them sends, or is about to
}

// caller is one request. The instance's lock guards what changes of it, until its turn.
type caller struct {
	id           uint64
	units, limit int64
	deadline     time.Time // of its context; zero for none
	state        state
	turn         quota.Event // it is to send, or was answered; nil if it was to send at once

	decision quota.Decision
	err      error
}

// state is how far a caller has come.
type state uint8

// The states.
const (
	waits state = iota
	sends
	sent
	answered
)

// join puts a request into its queue. If no call is under way, its caller sends at once.
func (s *combine) join(ctx context.Context, req quota.Request) (*queue, *caller) {
	c := &caller{id: req.ID, units: req.Units, limit: req.Policy.Limit}
	c.deadline, _ = ctx.Deadline()
	s.mu.Lock()
	defer s.mu.Unlock()
	account := family.AccountOf(req.Policy, req.Subject)
	q := s.queues[account]
	if q == nil {
		q = &queue{}
		s.queues[account] = q
	}
	if q.busy {
		c.turn = s.clock.NewEvent()
	} else {
		q.busy = true
		c.state = sends
	}
	q.callers = append(q.callers, c)
	return q, c
}

// leave takes a caller out of its queue. If it was about to send, the next one is.
func (s *combine) leave(req quota.Request, q *queue, c *caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(q.callers, c); i >= 0 {
		q.callers = slices.Delete(q.callers, i, i+1)
	}
	if c.state == sends {
		q.next()
	}
	if len(q.callers) == 0 {
		delete(s.queues, family.AccountOf(req.Policy, req.Subject))
	}
}

// next has the first of those who wait send. The instance's lock must be held.
func (q *queue) next() {
	for _, caller := range q.callers {
		if caller.state == waits {
			caller.state = sends
			caller.turn.Set()
			return
		}
	}
	q.busy = false
}

// gaveUp reports whether a caller whose context has ended leaves without a decision.
func (s *combine) gaveUp(c *caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.state == sent {
		s.left.Add(1)
	}
	return c.state != answered
}

// depart is the next batch: those who have come so far, up to the first with another limit
// than the sender's.
func (s *combine) depart(q *queue) (batch []*caller, number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, caller := range q.callers {
		if caller.state > sends {
			continue
		}
		if len(batch) > 0 && caller.limit != batch[0].limit {
			break
		}
		caller.state = sent
		batch = append(batch, caller)
	}
	if s.again {
		s.number++
	}
	s.batches.Add(1)
	s.largest.Most(int64(len(batch)))
	return batch, s.number
}

// arrive tells the callers of a batch what has become of it, and has the next ones ask.
func (s *combine) arrive(q *queue, batch []*caller, r *reply, err error) {
	if err != nil {
		s.lost.Add(1)
		s.lostCallers.Add(int64(len(batch)))
	}
	s.mu.Lock()
	for i, caller := range batch {
		caller.state = answered
		caller.err = err
		if err == nil {
			caller.decision = r.decision(i)
		}
	}
	q.next()
	s.mu.Unlock()
	for _, caller := range batch {
		if caller.turn != nil {
			caller.turn.Set()
		}
	}
}

// shared is a context for a call that the callers of a batch wait for. None of several ends
// it alone: it ends at the latest of their deadlines, if all have one.
func (s *combine) shared(ctx context.Context, batch []*caller) (context.Context, context.CancelFunc) {
	if len(batch) == 1 {
		return ctx, func() {}
	}
	ctx = context.WithoutCancel(ctx)
	last := batch[0].deadline
	for _, caller := range batch {
		if caller.deadline.IsZero() {
			return ctx, func() {}
		}
		if caller.deadline.After(last) {
			last = caller.deadline
		}
	}
	return quota.WithTimeout(ctx, s.clock, max(last.Sub(s.clock.Now()), 1))
}
