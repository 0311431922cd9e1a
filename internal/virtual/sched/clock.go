package sched

import (
	"context"
	"errors"
	"github.com/quotabench/quotabench/quota"
	"time"
)

// errOutside is what a wait answers that no scheduler can see.
var errOutside = errors.New("sched: would wait, but the context belongs to no actor")

// Clock returns the scheduler's clock as an instance sees it whose own clock is
// ahead by skew. Waiting is not affected by the skew.
func (s *Scheduler) Clock(skew time.Duration) quota.Clock { return clock{s, skew, 0} }

// Steps is a clock that is right at first, and ahead by skew when so much time has passed.
func (s *Scheduler) Steps(skew, after time.Duration) quota.Clock { return clock{s, skew, after} }

type clock struct {
	scheduler   *Scheduler
	skew, after time.Duration
}

func (c clock) Now() time.Time {
	c.scheduler.readsClock()
	now := c.scheduler.cfg.Start.Add(c.scheduler.since)
	if c.scheduler.since < c.after {
		return now
	}
	return now.Add(c.skew)
}

// readsClock is called on goroutines of the strategy's own, too.
func (s *Scheduler) readsClock() {
	if !s.readClock.Load() {
		s.readClock.Store(true)
	}
}

func (c clock) Sleep(ctx context.Context, duration time.Duration) error {
	if duration <= 0 {
		return ctx.Err()
	}
	actor := From(ctx)
	if actor == nil {
		return errOutside
	}
	c.scheduler.readsClock()
	op := Op{Kind: Sleep, Until: c.scheduler.Now().Add(duration), ctx: ctx}
	if err := actor.park(&op); err != nil {
		return err
	}
	if c.scheduler.Now().Before(op.Until) {
		return ctx.Err()
	}
	return nil
}

func (c clock) NewMutex() quota.Mutex {
	return &mutex{scheduler: c.scheduler, made: c.scheduler.stepped, number: c.scheduler.numbered()}
}

func (c clock) NewEvent() quota.Event {
	return &event{scheduler: c.scheduler, made: c.scheduler.stepped, number: c.scheduler.numbered()}
}

// outsider holds mutexes that were locked outside of all actors.
var outsider = &Actor{Name: "no actor"}

type mutex struct {
	scheduler *Scheduler
	made      uint64 // in which step
	number    int
	holder    *Actor
	waiters   []*Actor // under Simulate, first come first served
}

// Lock parks even if the mutex is free: who gets it first is a choice of its
// own, apart from who spoke to a store first.
func (m *mutex) Lock(ctx context.Context) error {
	actor := From(ctx)
	if actor == nil {
		m.scheduler.touch(m.made, m.number)
		if m.holder != nil {
			return errOutside
		}
		m.holder = outsider
		return nil
	}
	if err := actor.park(&Op{Kind: Lock, ctx: ctx, mutex: m}); err != nil {
		return err
	}
	actor.op.mutex = nil
	m.scheduler.touch(m.made, m.number)
	if m.holder != nil {
		return ctx.Err()
	}
	m.holder = actor
	return nil
}

func (m *mutex) Unlock() {
	if m.holder == nil {
		panic("sched: unlock of an unlocked mutex")
	}
	m.scheduler.touch(m.made, m.number)
	m.holder = nil
	m.promote()
}

// promote gives the first waiter its turn. It matters under Simulate only, in
// which no search looks for actors that have become ready.
func (m *mutex) promote() {
	for m.holder == nil && len(m.waiters) > 0 {
		actor := m.waiters[0]
		m.waiters = m.waiters[1:]
		if !actor.done && actor.op.mutex == m {
			m.scheduler.queue.enter(m.scheduler.queue.now(), actor, false)
			return
		}
	}
}

type event struct {
	scheduler *Scheduler
	made      uint64 // in which step
	number    int
	set       bool
	waiters   []*Actor
	first     [1]*Actor // of waiters, mostly the only one
}

// Renew makes an event as it was when it was new, once nobody waits for it. It must be
// one of a scheduler's clock.
func Renew(e quota.Event) {
	x := e.(*event)
	x.set = false
	x.made = x.scheduler.stepped
}

func (e *event) Set() {
	if !e.set {
		e.scheduler.touch(e.made, e.number)
	}
	e.set = true
	for _, actor := range e.waiters {
		if !actor.done && actor.op.event == e {
			e.scheduler.queue.enter(e.scheduler.queue.now(), actor, false)
		}
	}
	e.waiters = nil
}

func (e *event) Wait(ctx context.Context) error {
	actor := From(ctx)
	if actor == nil {
		e.scheduler.touch(e.made, e.number)
		if !e.set {
			return errOutside
		}
		return nil
	}
	if err := actor.park(&Op{Kind: Wait, ctx: ctx, event: e}); err != nil {
		return err
	}
	if !e.set {
		e.scheduler.touch(e.made, e.number)
		return ctx.Err()
	}
	return nil
}
