package sim

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness/sim/memredis"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/strategies"
)

// wires are the ways from callers to stores. A command takes three steps: its
// request travels, which is a sleep; it waits and is served, which ends in its
// effect; its reply travels. The second begins when the first is over, so that
// a server's queue sees commands in the order in which they arrive and not in
// which they were sent.
type wires struct {
	s     *sched.Scheduler
	clock strategies.Clock
	rng   *rand.Rand
	// way that an actor's operation is on, by the actor's number.
	way []*way
	// inside is set while a client carries an operation out: what it does
	// underneath, such as opening a connection, is part of it.
	inside bool
	legs   int64
}

// way leads from one region to one server.
type way struct {
	to *server
	// far is one direction of the distance between the regions.
	far time.Duration
}

// request sends an actor's operation on its way.
func (w *wires) request(ctx context.Context, a *sched.Actor, to *way) error {
	w.legs++
	if err := w.clock.Sleep(ctx, to.far+to.to.net.Request.draw(w.rng)); err != nil {
		return err
	}
	for len(w.way) <= a.ID {
		w.way = append(w.way, nil)
	}
	w.way[a.ID] = to
	return nil
}

// latency is what the scheduler asks for.
func (w *wires) latency(a *sched.Actor, op sched.Op) time.Duration {
	switch op.Kind {
	case sched.Command, sched.Transaction, sched.SQL:
		return w.way[a.ID].to.serve(w.s.Now().UnixNano(), w.rng)
	case sched.Reply:
		to := w.way[a.ID]
		return to.far + to.to.net.Reply.draw(w.rng)
	default:
		return 0
	}
}

// outer is the hook of a client that comes before the scheduler's.
type outer struct {
	w  *wires
	to *way
}

var _ redis.Hook = outer{}

// DialHook implements [redis.Hook].
func (outer) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (o outer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if a := sched.From(ctx); a != nil && !o.w.inside {
			if err := o.w.request(ctx, a, o.to); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [redis.Hook]. A pipeline travels as one.
func (o outer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if a := sched.From(ctx); a != nil && !o.w.inside {
			if err := o.w.request(ctx, a, o.to); err != nil {
				for _, c := range cmds {
					c.SetErr(err)
				}
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// inner is the hook of a client that comes after the scheduler's: it brings the
// table up to the present and has it answer.
type inner struct {
	w     *wires
	table *memredis.Table
	// real is set where a server carries the commands out; the table then only
	// knows what expires.
	real bool
}

var _ redis.Hook = inner{}

// DialHook implements [redis.Hook]. Connections to the table need no network.
func (inner) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements [redis.Hook].
func (i inner) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if i.w.inside {
			return next(ctx, cmd)
		}
		i.table.SetNow(i.w.s.Now().UnixNano())
		if i.real {
			i.table.Shadow(cmd)
		} else if err, ok := i.table.Process(cmd); ok {
			return err
		}
		return i.pass(func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (i inner) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if i.w.inside {
			return next(ctx, cmds)
		}
		i.table.SetNow(i.w.s.Now().UnixNano())
		if i.real {
			for _, c := range cmds {
				i.table.Shadow(c)
			}
		}
		return i.pass(func() error { return next(ctx, cmds) })
	}
}

func (i inner) pass(do func() error) error {
	i.w.inside = true
	defer func() { i.w.inside = false }()
	return do()
}

// statement runs the statements of a model for the callers of one region.
func (w *wires) statement(to *way) strategies.Statement {
	return func(ctx context.Context, sql string, run func() error) error {
		if a := sched.From(ctx); a != nil {
			if err := w.request(ctx, a, to); err != nil {
				return err
			}
		}
		return sched.Statement(ctx, sql, run)
	}
}
