// Package hooks makes hooks of Redis clients from one function.
package hooks

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Redis is called with commands that a client is about to send together, at least one. send sends them, and may be
// called with another context. The error is that of the client's call.
type Redis func(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error

var _ redis.Hook = Redis(nil)

// DialHook implements [redis.Hook].
func (Redis) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (h Redis) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h(ctx, []redis.Cmder{cmd}, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (h Redis) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h(ctx, cmds, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}
