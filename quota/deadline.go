package quota

import (
	"context"
	"time"
)

// Deadliner is a clock that can end contexts. Clocks of virtual time are not:
// waiting there takes no time that a deadline could bound.
type Deadliner interface {
	// WithTimeout is [context.WithTimeout] by the clock in force.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// WithTimeout ends a context after d if the clock in force can, and otherwise returns it
// unchanged. d must be positive. The function that is returned must be called.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	if by, ok := c.(Deadliner); ok {
		return by.WithTimeout(ctx, d)
	}
	return ctx, func() {}
}
