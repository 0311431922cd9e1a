package sim

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/trouble"
	conditions "github.com/quotabench/quotabench/internal/trouble/network"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// network is the routes from callers to stores. A command's request travels, it
// waits and is served, which ends in its effect, and its reply travels.
type network struct {
	scheduler *sched.Scheduler
	rng       *rand.PCG
	// route that an actor's operation is on, by the actor's number.
	route []*route
	// inside is set while a client carries an operation out: what it does
	// underneath, such as opening a connection, is part of it.
	inside atomic.Bool
	legs   int64
	// watching is set while requests are issued.
	watching bool
	witness  *witness.Witness
	clock    quota.Clock
	outages  []results.Span
	wrong    wrong  // with the network
	turns    []turn // of outages, in the order of their time
	cold     bool   // every operation opens a connection
	// foreign has commands belong to the caller whose goroutine they come from.
	foreign bool
	// careful keeps commands from the store that come from a goroutine of the strategy's own.
	careful bool
}

// newNetwork makes the network of a simulation, with its scheduler in its middle, which
// returns if interrupt says so; nil for never.
func newNetwork(cfg *Config, hash *stepHash, interrupt func() bool, beat *sched.Beat) *network {
	w := &network{rng: rand.NewPCG(seed.Stream(cfg.Seed, seed.Network), 0)}
	w.outages, w.turns = cfg.outages()
	w.cold, w.wrong = cfg.Cold, newWrong(cfg, w.rng)
	w.scheduler = sched.New(sched.Config{Start: cfg.Start, SplitReplies: true, Travel: w.travel, Observe: hash.observe,
		Interrupt: interrupt, Beat: beat})
	w.clock = w.scheduler.Clock(0)
	return w
}

// leave is for what a client sends while it carries out what came by its hooks. What a goroutine
// of the strategy's own sends at that moment, e.g. to subscribe, has a connection of its own.
func (w *network) leave(first bool) error {
	if !w.inside.Load() || first && w.careful && w.scheduler.OnOwn() {
		return w.witness.Past()
	}
	return nil
}

// route leads from one region to one server.
type route struct {
	server *server
	// far is one direction of the distance between the regions.
	far time.Duration
	// wrong are the events of the network between the instance and the store.
	wrong trouble.List
}

// request sends an actor's operation on its way.
func (w *network) request(actor *sched.Actor, to *route) {
	w.legs++
	for len(w.route) <= actor.ID {
		w.route = append(w.route, nil)
	}
	w.route[actor.ID] = to
}

// travel is how long a request takes to its store.
func (w *network) travel(actor *sched.Actor, _ *sched.Op) time.Duration {
	route := w.route[actor.ID]
	return route.far + route.server.request.draw(w.rng)
}

// latency is what the scheduler asks for.
func (w *network) latency(actor *sched.Actor, op *sched.Op) time.Duration {
	switch op.Kind {
	case sched.Command, sched.Transaction, sched.SQL:
		return w.route[actor.ID].server.serve(w.scheduler.Nano(), w.rng)
	case sched.Reply:
		route := w.route[actor.ID]
		return route.far + route.server.reply.draw(w.rng) + w.delay(route)
	default:
		return 0
	}
}

// handshakes are the round trips before the first command of a connection: TCP's own,
// and the client's greeting.
const handshakes = 2

// connected opens a connection for an operation if each has one of its own. It
// is an error if the store is away.
func (w *network) connected(ctx context.Context, to *route, store strategies.Need) error {
	if err := w.refused(ctx, to, store); err != nil || !w.cold {
		return err
	}
	for range handshakes {
		trip := 2*to.far + to.server.request.draw(w.rng) + to.server.reply.draw(w.rng) + w.delay(to)
		if err := w.clock.Sleep(ctx, trip); err != nil {
			return err
		}
	}
	return w.lost(nil, store)
}

// send sends commands on their way together, as the hook of a client that comes before the scheduler's. It shows
// commands to the witness while requests are issued, except those that a command sends underneath.
func (w *network) send(ctx context.Context, to *route, cmds []redis.Cmder, next func(context.Context) error) error {
	ctx, err := w.adopt(ctx, cmds[0])
	if err != nil {
		return setErrors(cmds, err)
	}
	if w.inside.Load() {
		return next(ctx)
	}
	if w.watching {
		for _, cmd := range cmds {
			w.witness.Redis(ctx, cmd)
		}
	}
	actor := sched.From(ctx)
	if actor == nil {
		return next(ctx)
	}
	if err := w.connected(ctx, to, strategies.NeedRedis); err != nil {
		return setErrors(cmds, err)
	}
	reply, lost := w.loses(ctx, to)
	if lost != nil {
		return setErrors(cmds, lost)
	}
	w.request(actor, to)
	err = next(ctx)
	switch {
	case reply:
		return setErrors(cmds, errLost)
	case err == nil && w.down(strategies.NeedRedis):
		return setErrors(cmds, errDown)
	}
	return err
}

// storeHook is the hook of a client that comes after the scheduler's: it brings the
// table up to the present and has it answer.
type storeHook struct {
	network *network
	table   fakeredis.Redis
	server  *server
	// real is set if a server carries the commands out; the table then only
	// knows what expires.
	real bool
}

// carryOut is a [hooks.Redis]. Code outside of all callers always finds the store.
func (i storeHook) carryOut(ctx context.Context, cmds []redis.Cmder, next func(context.Context) error) error {
	if i.network.inside.Load() {
		return next(ctx)
	}
	if i.network.down(strategies.NeedRedis) && sched.From(ctx) != nil {
		return setErrors(cmds, errDown)
	}
	i.present()
	if i.real {
		for _, cmd := range cmds {
			i.table.Shadow(cmd)
		}
	} else if len(cmds) == 1 {
		if err, ok := i.table.Process(cmds[0]); ok {
			return err
		}
	}
	i.network.inside.Store(true)
	defer i.network.inside.Store(false)
	return next(ctx)
}

// answer carries out a command that the table can answer at once.
func (i storeHook) answer(cmd redis.Cmder) (error, bool) {
	if i.network.down(strategies.NeedRedis) {
		return errDown, true
	}
	i.present()
	if _, script := cmd.(*redis.Cmd); script { // it may run forever
		return nil, false
	}
	return i.table.Process(cmd)
}

// present brings the table up to this moment.
func (i storeHook) present() {
	now := i.network.scheduler.Nano()
	i.network.befall(i.server, i.table)
	i.table.SetNow(now)
}

// wrong is what is wrong with the network on purpose, and what it has lost.
type wrong struct {
	all      trouble.List
	start    int64 // of the run
	length   time.Duration
	rng      *rand.Rand
	requests int64
	replies  int64
}

func newWrong(cfg *Config, rng *rand.PCG) wrong {
	return wrong{all: cfg.Trouble.Of(trouble.Network), start: cfg.Start.UnixNano(), length: cfg.Duration,
		rng: rand.New(rng)}
}

// between are the events of the network between an instance and a store.
func (w *wrong) between(instance int, store strategies.Need) (out trouble.List) {
	for _, event := range w.all {
		if event.Where.Name == string(store) && event.Where.Has(instance) {
			out = append(out, event)
		}
	}
	return out
}

// delay is by how much a reply that is sent now is later.
func (w *network) delay(to *route) (duration time.Duration) {
	for i := range to.wrong {
		event := &to.wrong[i]
		if event.What.Latency > 0 && event.When.In(time.Duration(w.scheduler.Nano()-w.wrong.start), w.wrong.length) {
			duration += event.What.Delay(w.wrong.rng.Float64())
		}
	}
	return duration
}

// errLost is what a client sees of a request or a reply that is lost: a connection that was reset.
var errLost = conditions.Reset("planned loss")

// loses draws whether a request that is sent while requests are issued is lost, which is an error after its way there,
// or its reply will be.
func (w *network) loses(ctx context.Context, to *route) (reply bool, lost error) {
	for i := range to.wrong {
		event := &to.wrong[i]
		if !w.watching || !event.When.In(time.Duration(w.scheduler.Nano()-w.wrong.start), w.wrong.length) {
			continue
		}
		if event.What.Loss > 0 && w.wrong.rng.Float64() < event.What.Loss {
			w.wrong.requests++
			if err := w.clock.Sleep(ctx, to.far+to.server.request.draw(w.rng)); err != nil {
				return false, err
			}
			return false, errLost
		}
		reply = reply || event.What.ReplyLoss > 0 && w.wrong.rng.Float64() < event.What.ReplyLoss
	}
	if reply {
		w.wrong.replies++
	}
	return reply, nil
}
