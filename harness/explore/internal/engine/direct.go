package engine

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/memredis"
)

// Direct is the innermost hook of a client of a Redis in this process, which answers what it can without the protocol. Whatever
// else the client sends, it sends between Enter and the call of what that returns.
type Direct struct {
	Redis memredis.Redis
	Enter func() (leave func())
}

// DialHook implements [redis.Hook].
func (Direct) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (d Direct) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err, ok := d.Redis.Process(cmd)
		if !ok {
			defer d.Enter()()
			err = next(ctx, cmd)
		}
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook]. Transactions are left to the
// connection, which knows MULTI.
func (d Direct) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer d.Enter()()
		return memredis.Pipeline(ctx, d.Redis, cmds, next)
	}
}
