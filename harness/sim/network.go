package sim

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/quotabench/quotabench/quota"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/memredis"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/strategies"
)

// wires are the ways from callers to stores. A command's request travels, it
// waits and is served, which ends in its effect, and its reply travels.
type wires struct {
	s   *sched.Scheduler
	rng *rand.Rand
	// way that an actor's operation is on, by the actor's number.
	way []*way
	// inside is set while a client carries an operation out: what it does
	// underneath, such as opening a connection, is part of it.
	inside  bool
	legs    int64
	clock   quota.Clock
	outages []outage
}

// newWires makes the wires of a simulation, with its scheduler at their middle.
func newWires(cfg *Config, hash *traceHash) *wires {
	w := &wires{rng: rand.New(rand.NewPCG(cfg.Seed, 0x5117)), outages: cfg.outages()}
	w.s = sched.New(sched.Config{Start: cfg.Start, SplitReplies: true, Travel: w.travel, Observe: hash.observe})
	w.clock = w.s.Clock(0)
	return w
}

// way leads from one region to one server.
type way struct {
	to *server
	// far is one direction of the distance between the regions.
	far time.Duration
}

// request sends an actor's operation on its way.
func (w *wires) request(a *sched.Actor, to *way) {
	w.legs++
	for len(w.way) <= a.ID {
		w.way = append(w.way, nil)
	}
	w.way[a.ID] = to
}

// travel is how long a request takes to its store.
func (w *wires) travel(a *sched.Actor, _ sched.Op) time.Duration {
	to := w.way[a.ID]
	return to.far + to.to.net.Request.draw(w.rng)
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
		a := sched.From(ctx)
		if a == nil || o.w.inside {
			return next(ctx, cmd)
		}
		if err := o.w.refused(ctx, o.to, strategies.NeedRedis); err != nil {
			return err // which the client puts into cmd
		}
		o.w.request(a, o.to)
		return o.w.lost(next(ctx, cmd), strategies.NeedRedis)
	}
}

// ProcessPipelineHook implements [redis.Hook]. A pipeline travels as one.
func (o outer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		a := sched.From(ctx)
		if a == nil || o.w.inside {
			return next(ctx, cmds)
		}
		if err := o.w.refused(ctx, o.to, strategies.NeedRedis); err != nil {
			return setErrors(cmds, err)
		}
		o.w.request(a, o.to)
		err := next(ctx, cmds)
		if err == nil && o.w.down(strategies.NeedRedis) {
			return setErrors(cmds, errDown)
		}
		return err
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
		if i.away(ctx) {
			return errDown
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
		if i.away(ctx) {
			return setErrors(cmds, errDown)
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

// away reports whether a caller's command finds no server. Who looks into a store
// from outside of all callers always finds it.
func (i inner) away(ctx context.Context) bool {
	return i.w.down(strategies.NeedRedis) && sched.From(ctx) != nil
}

func (i inner) pass(do func() error) error {
	i.w.inside = true
	defer func() { i.w.inside = false }()
	return do()
}
