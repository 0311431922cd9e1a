package explore

import (
	"context"
	"errors"
	"github.com/quotabench/quotabench/quota"
	"time"
)

// errNoClient is what a wait answers that no client is in.
var errNoClient = errors.New("explore: would wait, but the context belongs to no client")

// sqlClock is virtual time for strategies on PostgreSQL. It stands still but for
// sleeps, which end once nobody else can do anything. The server has a clock of
// its own.
type sqlClock struct {
	w    *sqlWorld
	skew time.Duration
}

// Now implements quota.Clock.
func (c sqlClock) Now() time.Time { return c.w.now.Add(c.skew) }

// Sleep implements quota.Clock.
func (c sqlClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	return sqlStop(ctx, sqlOp{kind: sqlSleep, text: "has slept " + shortDuration(d), until: c.w.now.Add(d)})
}

// NewMutex implements quota.Clock.
func (c sqlClock) NewMutex() quota.Mutex { return &sqlMutex{} }

// NewEvent implements quota.Clock.
func (c sqlClock) NewEvent() quota.Event { return &sqlEvent{} }

// sqlStop stops the client that ctx belongs to.
func sqlStop(ctx context.Context, op sqlOp) error {
	c, ok := ctx.Value(sqlClientKey{}).(*sqlClient)
	if !ok {
		return errNoClient
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.park(op)
	return ctx.Err()
}

// sqlMutex needs no guard of its own: one client runs at a time.
type sqlMutex struct{ held bool }

// Lock stops even if the mutex is free: who gets it first is a choice of its own.
func (m *sqlMutex) Lock(ctx context.Context) error {
	if ctx.Value(sqlClientKey{}) == nil && !m.held {
		m.held = true
		return nil
	}
	if err := sqlStop(ctx, sqlOp{kind: sqlWait, text: "lock", ready: func() bool { return !m.held }}); err != nil {
		return err
	}
	m.held = true
	return nil
}

// Unlock implements quota.Mutex.
func (m *sqlMutex) Unlock() {
	if !m.held {
		panic("explore: unlock of an unlocked mutex")
	}
	m.held = false
}

type sqlEvent struct{ set bool }

// Set implements quota.Event.
func (e *sqlEvent) Set() { e.set = true }

// Wait implements quota.Event.
func (e *sqlEvent) Wait(ctx context.Context) error {
	if e.set {
		return ctx.Err()
	}
	return sqlStop(ctx, sqlOp{kind: sqlWait, text: "wait for an event", ready: func() bool { return e.set }})
}
