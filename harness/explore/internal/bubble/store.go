package bubble

import (
	"context"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/memredis"
	"github.com/quotabench/quotabench/internal/stacks"
)

// mostConnections is how many of an instance's callers can have one at the same time.
const mostConnections = 64

// client is the one that an instance is given in its present life. Its pool is made of
// channels, and belongs to the bubble.
func (e *Engine) client(in *instance) redis.UniversalClient {
	for len(in.clients) <= in.lives {
		c := memredis.Watched(e.redis, mostConnections, func(first bool) error {
			if e.inside.Load() == 0 || first && !e.within() {
				return e.Witness.Past()
			}
			return nil
		})
		c.AddHook(hook{e, in, len(in.clients)})
		in.clients = append(in.clients, c)
	}
	return in.clients[in.lives]
}

// passing reports whether commands happen at once.
func (e *Engine) passing() bool { return e.direct.Load() }

// within reports whether a command is part of an effect that is being carried out, as the
// greeting of a new connection is.
func (e *Engine) within() bool {
	at := e.inside.Load()
	return at != 0 && at == stacks.Current()
}

// enter has what the client does on this goroutine be part of an effect, until what it
// returns is called.
func (e *Engine) enter() func() {
	e.inside.Store(stacks.Current())
	return func() { e.inside.Store(0) }
}

// seen shows a command to the witness.
func (e *Engine) seen(ctx context.Context, cmd redis.Cmder) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.Witness.Command(ctx, cmd.Name(), cmd.Args())
	}
}

// process carries one command out.
func (e *Engine) process(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	e.effects.Lock()
	defer e.effects.Unlock()
	err, ok := e.redis.Process(cmd)
	if !ok {
		defer e.enter()()
		err = next(ctx, cmd)
	}
	e.lacking()
	return err
}

// pipelined carries the commands of a pipeline out, one after the other, or those of a
// transaction at once.
func (e *Engine) pipelined(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
	e.effects.Lock()
	defer e.effects.Unlock()
	defer e.enter()()
	defer e.lacking()
	return memredis.Pipeline(ctx, e.redis, cmds, next)
}

func (e *Engine) lacking() {
	if err := memredis.Lacking(e.redis); err != nil {
		e.fail(err)
	}
}

// sync brings the store's clock up to the present moment.
func (e *Engine) sync() {
	e.redis.SetNow(e.now.UnixNano())
	e.redis.ExpireDue()
}

// keys are what is stored now.
func (e *Engine) keys() []memredis.Key {
	e.sync()
	return e.redis.Keys(nil)
}
