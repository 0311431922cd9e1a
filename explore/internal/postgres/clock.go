package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// errNoClient is what a wait answers under a context that belongs to no client.
var errNoClient = errors.New("explore: would wait, but the context belongs to no client")

// virtual is virtual time for strategies on PostgreSQL. It stands still except for
// sleeps, which end once no client can do anything else. The server has a clock of
// its own.
type virtual struct {
	engine *Engine
	skew   time.Duration
}

// Now implements quota.Clock.
func (c virtual) Now() time.Time { return c.engine.now.Add(c.skew) }

// Sleep implements quota.Clock.
func (c virtual) Sleep(ctx context.Context, duration time.Duration) error {
	if duration <= 0 {
		return ctx.Err()
	}
	return stop(ctx, halt{kind: opSleep, text: "has slept " +
		quota.LengthText(duration), until: c.engine.now.Add(duration)})
}

// NewMutex implements quota.Clock.
func (c virtual) NewMutex() quota.Mutex { return &mutex{} }

// NewEvent implements quota.Clock.
func (c virtual) NewEvent() quota.Event { return &event{} }

// stop stops the client that ctx belongs to.
func stop(ctx context.Context, h halt) error {
	c, ok := ctx.Value(clientKey{}).(*client)
	if !ok {
		return errNoClient
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.park(h)
	return ctx.Err()
}

// mutex needs no guard of its own: one client runs at a time.
type mutex struct{ held bool }

// Lock stops even if the mutex is free: who gets it first is a choice of its own.
func (m *mutex) Lock(ctx context.Context) error {
	if ctx.Value(clientKey{}) == nil && !m.held {
		m.held = true
		return nil
	}
	if err := stop(ctx, halt{kind: opWait, text: "lock", ready: func() bool { return !m.held }}); err != nil {
		return err
	}
	m.held = true
	return nil
}

// Unlock implements quota.Mutex.
func (m *mutex) Unlock() {
	if !m.held {
		panic("explore: unlock of an unlocked mutex")
	}
	m.held = false
}

type event struct{ set bool }

// Set implements quota.Event.
func (e *event) Set() { e.set = true }

// Wait implements quota.Event.
func (e *event) Wait(ctx context.Context) error {
	if e.set {
		return ctx.Err()
	}
	return stop(ctx, halt{kind: opWait, text: "wait for an event", ready: func() bool { return e.set }})
}
