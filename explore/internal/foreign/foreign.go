// Package foreign runs schedules of code that knows nothing of this module: limiters
// that read the clock of package time, start goroutines and timers, hold mutexes, or
// send commands under contexts of their own. Each schedule runs in a bubble of
// testing/synctest, whose clock stands still until the search moves it. A step is one
// Redis command, whatever goroutine sends it.
//
// What a strategy keeps in memory is not looked at. Two schedules lead to the same
// state if each instance has seen the same at the same moments and the store holds
// the same, so nothing can be missed that is hidden in a closure.
//
// What cannot be run so is named and never judged: a mutex that one caller holds while
// it waits for the store and another waits for, a connection of the strategy's own, and
// goroutines that outlive Close. A panic on a goroutine of the strategy's own ends the
// program, as it does everywhere in Go.
package foreign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/virtual/bubble"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

// Engine is one strategy with its clients and stores.
type Engine struct {
	engine.World
	sel   strategies.Selection
	redis fakeredis.Redis
	clock clock.Runtime

	world *world
	// abandoned are bubbles whose goroutines have not ended, with what they use: what
	// belongs to a bubble must not be finalized outside of it.
	abandoned []any
	shared    *strategies.Shared
	instances []*instance
	clients   []*client // and the last, which asks when the others have ended
	last      *client
	snapshot  engine.Snapshot
	fused     bool
	common    bool // instances see memory of each other
	now       time.Time
	// own is set if instances have goroutines of their own, once that is counted.
	own, counted bool

	// direct has commands happen at once: instances are being opened or looked at.
	direct atomic.Bool
	// effects are carried out one at a time.
	effects sync.Mutex
	// inside is the goroutine that the client carries an effect out on, which may greet;
	// 0 for none.
	inside atomic.Uint64
	news   chan struct{}

	ended int        // clients when a wait began
	mu    sync.Mutex // over arrived, over, err and active, which goroutines of the strategy reach
	inRun
}

// inRun is what begins anew with each run.
type inRun struct {
	arrived []*parked
	over    bool
	err     error // of the run itself
	helpers []*parked
	turns   []*parked
	frozen  []*parked     // of the dead
	lingers time.Time     // keys whose deadline is this moment are still there
	active  *client       // that the present step has let go on
	went    *parked       // what the last step of an actor was taken with; nil if it began
	history engine.Digest // of the order in which something came to an instance
	// stuck says which callers wait for something that no passing of time brings.
	stuck []string
	names []string // of goroutines of strategies that have been at the store
}

// instance is one application instance.
type instance struct {
	index    int
	rand     *rand.Rand
	source   *seed.Source
	begin    uint64
	strategy strategies.Strategy
	past
}

// past is what an instance has seen in a run.
type past struct {
	clients []redis.UniversalClient // by its lives
	earlier []strategies.Strategy   // of lives that have ended
	lives   int
	history engine.Digest // of all that it has seen
}

type client struct {
	engine.Client
	instance  *instance
	goroutine uint64
	started   bool
	done      atomic.Bool // set by a goroutine that time alone may have woken
	dead      atomic.Bool
	at        *parked
}

// between reports whether the client is between two of its actions.
func (c *client) between() bool { return c.at != nil && c.at.op.Kind == sched.Wait }

// Search runs f with an engine over a Redis in this process.
func Search[T any](sel strategies.Selection, setup engine.Setup, f func(*Engine) (T, error)) (T, error) {
	return fakeredis.WithFallback(func(open func() (fakeredis.Redis, error)) (res T, err error) {
		redis, err := open()
		if err != nil {
			return res, err
		}
		e := newEngine(sel, setup, redis)
		res, err = f(e)
		return res, errors.Join(err, e.Close())
	})
}

func newEngine(sel strategies.Selection, setup engine.Setup, redis fakeredis.Redis) *Engine {
	e := &Engine{sel: sel, redis: redis}
	e.Run.Timeline.Stored.Look = e.keys
	e.Witness = witness.New(witness.Config{
		NeedsStore: len(sel.RedisNeeds()) > 0, Real: clock.Wall{}.Now(), Virtual: setup.Begins(),
	})
	e.Traits = engine.Traits{State: true, Deadlines: true, Splits: true, Preempts: true, Foreign: true}
	e.Connect(e, &setup)
	for i := range setup.Instances {
		in := &instance{index: i, source: seed.NewSource(setup.Seed, seed.Instance, 0, uint64(i))}
		in.begin, in.rand = in.source.State(), rand.New(in.source)
		e.instances = append(e.instances, in)
	}
	for i := range setup.Clients + 1 {
		c := &client{Client: e.Client(i)}
		if i == setup.Clients {
			c.Client, e.last, e.Last = e.LastClient(), c, &c.Client
		}
		c.Over = func() bool { return e.isOver() || c.dead.Load() }
		c.Strategy = func() strategies.Strategy { return c.instance.strategy }
		c.Turn = func() { e.turn(c) }
		e.clients = append(e.clients, c)
	}
	return e
}

func (e *Engine) isOver() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over
}

func (e *Engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
}

// in has the bubble do something, and returns with what went wrong.
func (e *Engine) in(f func()) error {
	if err := e.world.do(e.Setup.Patience, f); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Begin implements [engine.Engine].
func (e *Engine) Begin() error {
	e.world = newWorld()
	e.inRun = inRun{}
	if e.shared == nil || e.shared.Len() > 0 {
		e.shared = &strategies.Shared{}
	}
	e.Fresh(e.Setup.Begins())
	for i := range e.clients[:e.last.Index] {
		e.Run.Timeline.Column(engine.ClientColumn(i))
	}
	return e.in(e.begin)
}

// begin sets the run up, within the bubble.
func (e *Engine) begin() {
	e.news = make(chan struct{}, 1)
	time.Sleep(e.Setup.Begins().Sub(e.clock.Now())) // in which goroutines wake
	e.now = e.clock.Now()
	e.redis.Reset(e.now.UnixNano())
	for _, instance := range e.instances {
		instance.past = past{}
		if err := e.open(instance); err != nil {
			e.fail(err)
			return
		}
	}
	if err := e.provision(); err != nil {
		e.fail(err)
		return
	}
	for i, client := range e.clients {
		client.instance = e.instances[i%len(e.instances)]
		client.goroutine = 0
		client.started = false
		client.at = nil
		client.Pending = -1
		client.done.Store(false)
		client.dead.Store(false)
	}
	e.fused = e.Setup.Instances == e.Setup.Clients && !e.Setup.Ticks() && !e.Setup.HasFaultAt(engine.Asking) &&
		!e.Setup.Shares
	e.settle()
	if !e.counted {
		e.counted, e.own = true, bubble.Left(e.world.mark, e.world.root) > 0
	}
}

func (e *Engine) provision() error {
	e.direct.Store(true)
	defer e.direct.Store(false)
	return e.Setup.Provision(context.Background(), e.instances[0].strategy, e.sel.Name)
}

func (e *Engine) open(in *instance) error {
	e.direct.Store(true)
	defer e.direct.Store(false)
	in.source.SetState(in.begin + uint64(in.lives)) // a process that starts anew draws other numbers
	client := e.client(in)
	env := strategies.Env{
		Clock: e.clock, Rand: in.rand, Clients: map[string]any{string(strategies.NeedRedis): client}, Shared: e.shared,
		Instance: in.index, Instances: e.Setup.Instances, Subjects: 1, Options: e.sel.Options, Wake: func(string) {},
	}
	for _, name := range e.sel.RedisNeeds() {
		env.Clients[string(name)] = client
	}
	strategy, err := e.sel.Open(context.Background(), env)
	if err != nil {
		return fmt.Errorf("open %s: %w", e.sel, err)
	}
	if j, ok := strategy.(strategies.Jobber); ok && len(j.Jobs()) > 0 {
		return &engine.UnfitError{Err: fmt.Errorf("strategy %s is foreign and has jobs: its own goroutines do its background "+
			"work, or it is not foreign", e.sel.Name)}
	}
	in.strategy = strategy
	return nil
}

// End implements [engine.Engine].
func (e *Engine) End() error {
	world := e.world
	if world == nil {
		return nil
	}
	e.world = nil
	if world.stuck {
		e.abandon(world)
		return nil
	}
	if err := world.do(e.Setup.Patience, e.finish); err == nil {
		world.close()
		if world.failed == nil {
			return nil
		}
		if e.Run.Left == 0 { // it has left none before: counting them takes long
			e.Run.Left = len(bubble.Members(world.mark))
		}
		if e.Run.Left == 0 {
			return fmt.Errorf("a bubble did not end: %v", world.failed)
		}
	}
	e.abandon(world)
	return nil
}

// mostAbandoned is how many bubbles may stay behind before no further schedule is run:
// each of them keeps its goroutines and what these reach.
const mostAbandoned = 5_000

func (e *Engine) abandon(w *world) {
	e.abandoned = append(e.abandoned, w)
	for _, instance := range e.instances {
		e.abandoned = append(e.abandoned, instance.strategy)
	}
	if len(e.abandoned) > mostAbandoned*(1+len(e.instances)) {
		e.Run.Spent = fmt.Sprintf("goroutines that the strategy starts do not end with Close, and those of %d schedules "+
			"are left", mostAbandoned)
	}
}

// finish ends all callers and instances.
func (e *Engine) finish() {
	e.mu.Lock()
	e.over = true
	waiting := slices.Concat(e.arrived, e.helpers, e.turns, e.frozen)
	e.mu.Unlock()
	for _, client := range e.clients {
		if client.at != nil {
			waiting = append(waiting, client.at)
		}
	}
	for _, parked := range waiting {
		parked.free(errOver)
	}
	synctest.Wait()
	e.await(func() bool {
		return !slices.ContainsFunc(e.clients, func(c *client) bool { return c.started && !c.done.Load() })
	})
	for _, instance := range e.instances {
		for _, strategy := range append(instance.earlier, instance.strategy) {
			if strategy != nil {
				_ = strategy.Close(context.Background()) // what it answers does not matter here
			}
		}
		for _, client := range instance.clients {
			_ = client.Close() // the strategy may have closed it
		}
	}
	synctest.Wait()
}

// free lets a goroutine go on, once.
func (p *parked) free(err error) {
	select {
	case p.release <- err:
	default:
	}
}

// Close implements [engine.Engine].
func (e *Engine) Close() error { return e.End() }
