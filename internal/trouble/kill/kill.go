// Package kill ends callers between two commands of theirs to a Redis, as a process ends
// that is killed.
package kill

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis/hooks"
)

// Err is what is known of a request whose caller was killed, and the answer to the commands
// that it still sends.
var Err = errors.New("the caller was killed, as planned")

type key struct{}

// caller is one that is to be killed.
type caller struct {
	left atomic.Int64 // commands until then
	end  func(ctx context.Context)
}

// After has the caller with that context killed after so many commands, each a lone one or a
// pipeline, that were sent through [Hook]. End is called in the last one, with its context:
// it ends the goroutine, or returns if it cannot. What the caller sends from then on does not
// reach the store. Dead tells whether it was killed.
func After(ctx context.Context, commands int, end func(ctx context.Context)) (_ context.Context, dead func() bool) {
	c := &caller{end: end}
	c.left.Store(int64(commands))
	return context.WithValue(ctx, key{}, c), func() bool { return c.left.Load() <= 0 }
}

// Hook is the first one of a client's.
var Hook = hooks.Redis(command)

// command sends commands, unless their caller is dead, and kills it if these were its last.
func command(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error {
	c, _ := ctx.Value(key{}).(*caller)
	if c == nil {
		return send(ctx)
	}
	if c.left.Load() > 0 {
		// What the client sends for itself, to open a connection, counts for nothing.
		err := send(context.WithValue(ctx, key{}, (*caller)(nil)))
		if c.left.Add(-1) != 0 {
			return err
		}
		c.end(ctx)
	}
	for _, cmd := range cmds {
		cmd.SetErr(Err)
	}
	return Err
}
