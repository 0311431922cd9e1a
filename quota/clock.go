package quota

import (
	"context"
	"time"
)

// Clock is the only source of time, and of waiting, for a strategy. Everything
// that makes a caller wait for another caller goes through it, so that a
// scheduler knows who can run.
type Clock interface {
	Now() time.Time
	// Sleep waits for d or until ctx is done, and then returns its error.
	Sleep(ctx context.Context, duration time.Duration) error
	// NewMutex makes a mutex that may be held across a store call. A mutex that
	// never is may be a plain sync.Mutex.
	NewMutex() Mutex
	// NewEvent makes a one-shot event.
	NewEvent() Event
}

// Mutex is a lock whose waiters the clock in force knows about.
type Mutex interface {
	// Lock waits for the lock or until ctx is done, and then returns its error
	// without holding the lock.
	Lock(ctx context.Context) error
	Unlock()
}

// Event happens once; all who wait for it go on.
type Event interface {
	// Set makes the event happen. Further calls do nothing.
	Set()
	// Wait waits for the event or until ctx is done, and then returns its error.
	Wait(ctx context.Context) error
}

// Deadliner is a clock that can end contexts. Clocks of virtual time are not:
// waiting there takes no time that a deadline could bound.
type Deadliner interface {
	// WithTimeout is [context.WithTimeout] by the clock in force.
	WithTimeout(ctx context.Context, duration time.Duration) (context.Context, context.CancelFunc)
}

// WithTimeout ends a context after duration if the clock in force can, and otherwise returns it
// unchanged. duration must be positive. The function that is returned must be called.
func WithTimeout(ctx context.Context, clock Clock, duration time.Duration) (context.Context, context.CancelFunc) {
	if deadliner, ok := clock.(Deadliner); ok {
		return deadliner.WithTimeout(ctx, duration)
	}
	return ctx, func() {}
}
