package foreign

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/stacks"
)

// mostConnections is how many of an instance's callers can have one at the same time.
const mostConnections = 64

// client is the one that an instance is given in its present life. Its pool is made of
// channels, and belongs to the bubble.
func (e *Engine) client(in *instance) redis.UniversalClient {
	for len(in.clients) <= in.lives {
		client := fakeredis.Watched(e.redis, mostConnections, func(first bool) error {
			if e.inside.Load() == 0 || first && !e.within() {
				return e.Witness.Past()
			}
			return nil
		})
		client.AddHook(hook{e, in, len(in.clients)})
		client.AddHook(engine.Direct{Redis: e.redis, Enter: e.enter})
		in.clients = append(in.clients, client)
	}
	return in.clients[in.lives]
}

// within reports whether a command is part of an effect that is being carried out, as the
// greeting of a new connection is.
func (e *Engine) within() bool {
	at := e.inside.Load()
	return at != 0 && at == stacks.Current()
}

// enter has what the client does on this goroutine be part of an effect, until what it
// returns is called.
func (e *Engine) enter() func() {
	before := e.inside.Swap(stacks.Current()) // a connection is greeted within a command
	return func() { e.inside.Store(before) }
}

// seen shows a command to the witness.
func (e *Engine) seen(ctx context.Context, cmd redis.Cmder) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.Witness.Command(ctx, cmd.Name(), cmd.Args())
	}
}

// carriesOut carries an effect out, one at a time.
func (e *Engine) carriesOut(effect func() error) error {
	e.effects.Lock()
	defer e.effects.Unlock()
	defer e.lacking()
	return effect()
}

func (e *Engine) lacking() {
	if err := fakeredis.Lacking(e.redis); err != nil {
		e.fail(err)
	}
}

// sync brings the store's clock up to the present moment.
func (e *Engine) sync() {
	e.redis.SetNow(e.now.UnixNano())
	if !e.now.Equal(e.lingers) {
		e.redis.ExpireDue()
	}
}

// keys are what is stored now.
func (e *Engine) keys() []fakeredis.Key {
	e.sync()
	return e.redis.Keys(nil)
}
