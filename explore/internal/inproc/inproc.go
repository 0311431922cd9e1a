// Package inproc runs schedules in this process: clients, jobs and faults are
// actors of a scheduler, a step is one store command, and time is virtual. The
// strategy's own code runs unmodified over a Redis in this process and the model
// of its database of record, or, to repeat a schedule, over a live Redis.
package inproc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Engine is one strategy with its clients and stores.
type Engine struct {
	engine.World
	sel   strategies.Selection
	store store
	named map[string]any // the store's client by the names that the strategy has for it
	start time.Time
	fused bool
	// blind leaves histories alone, and the witness: the same path has been run
	// before.
	blind bool
	// hurries is set if the tiers need not be looked at after a step, since a further
	// one of the same path follows that comes before the last two.
	hurries bool
	// reopen makes another engine over a store of its own; nil if the store is one
	// that others have.
	reopen func(engine.Setup) (*Engine, error)
	// runs begun so far.
	runs int
	// sampled is set in runs whose commands' arguments the witness looks at.
	sampled bool

	scheduler  *sched.Scheduler
	clock      quota.Clock // of s, ahead of nobody
	memory     hasher
	scratch    engine.Digest           // that it folds an instance into
	older      map[unsafe.Pointer]bool // hidden, and has outlived a run: callers notice what it keeps in a second one
	met        map[unsafe.Pointer]bool // hidden at the end of the run of that number
	metIn      int
	aliased    map[unsafe.Pointer]bool // what instances had in common at the end of the first run
	sight      sight                   // of the last state
	history    engine.Digest           // of all that has come to the instances since everything was seen
	shared     *strategies.Shared
	model      *strategies.Model
	instances  []*instance
	clients    []*client
	last       *client          // its member is nil until it asks
	actors     []*member        // by actor ID
	jobs       []strategies.Job // of the instance that was opened last
	synced     time.Duration    // the period of a periodic job that has run
	snapshot   engine.Snapshot
	holdings   []engine.Holding
	goroutines int  // of the program when the run began
	known      bool // the strategy is one of this module
	branch     branch
	foot       footprint
}

// The arguments of all commands are looked at in the first sampledRuns runs, and
// in each sampledEach-th after those.
const sampledRuns, sampledEach = 256, 16

// instance is one application instance.
type instance struct {
	index    int
	clock    quota.Clock
	source   *seed.Source
	begin    uint64     // the state in which source begins each run
	rand     *rand.Rand // over source
	strategy strategies.Strategy
	screener strategies.Screener // the strategy, if it is one
	jobs     *sched.Jobs
	wake     func(job string) // of jobs
	members  int
	lives    int // how often it has ended and started anew
	// hidden is what was not seen of its memory in the last state, and history what has come to it
	// since everything was seen.
	hidden  []unsafe.Pointer
	history engine.Digest
	// fresh is what it remembered when it was opened last, if it may crash.
	fresh engine.Digest
	// screens is set while a tier of its own rejects the subject; forgot, if the
	// last step has ended that.
	screens, forgot bool
}

// member is an actor with what it belongs to.
type member struct {
	*sched.Actor
	instance *instance
	// client is nil for a job.
	client *client
	// history stands for the actor's own variables.
	history engine.Digest
}

type client struct {
	engine.Client
	body   func(ctx context.Context)
	member *member
}

// Search runs f with an engine over a Redis in this process: over the table of
// keys, and anew over miniredis if the strategy sends a command that the table
// lacks.
func Search[T any](sel strategies.Selection, setup engine.Setup, f func(*Engine) (T, error)) (T, error) {
	return fakeredis.WithFallback(func(open func() (fakeredis.Redis, error)) (res T, err error) {
		var opening sync.Mutex
		over := func(setup engine.Setup) (*Engine, error) {
			opening.Lock()
			defer opening.Unlock()
			redis, err := open()
			if err != nil {
				return nil, err
			}
			if table, ok := redis.(*fakeredis.Table); ok && sel.NeedsStore(strategies.NeedReplicated) {
				table.Replicas = 1
			}
			return newEngine(sel, setup, newMemoryStore(redis, setup.Begins()), setup.Begins()), nil
		}
		w, err := over(setup)
		if err != nil {
			return res, err
		}
		w.reopen = over
		res, err = f(w)
		return res, errors.Join(err, w.Close())
	})
}

func newEngine(sel strategies.Selection, setup engine.Setup, st store, start time.Time) *Engine {
	w := &Engine{sel: sel, store: st, start: start, memory: &memory{}, known: stacks.InCatalogue(sel.Open)}
	w.Run.Timeline.Stored.Look = w.stored
	w.model = strategies.NewModel(w.statement)
	w.Witness = witness.New(witness.Config{
		NeedsStore: len(sel.RedisNeeds()) > 0 || sel.NeedsStore(strategies.NeedSource),
		Real:       clock.Wall{}.Now(), Virtual: start,
	})
	st.watch(w)
	w.Traits = engine.Traits{State: true, Deadlines: true, Splits: true, Preempts: true}
	w.Connect(w, &setup)
	w.scheduler = sched.New(sched.Config{Start: start, SplitReplies: setup.Split(), Observe: w.observe, Beat: setup.Beat})
	w.clock = w.scheduler.Clock(0)
	for i := range setup.Instances {
		in := &instance{index: i, clock: w.scheduler.Clock(w.Setup.SkewOf(i)),
			source: seed.NewSource(w.Setup.Seed, seed.Instance, 0, uint64(i))}
		in.begin, in.rand = in.source.State(), rand.New(in.source)
		label := ""
		if setup.Instances > 1 {
			label = fmt.Sprintf("%d:", i)
		}
		in.jobs = w.scheduler.NewJobs(label)
		in.wake = in.jobs.Wake
		w.instances = append(w.instances, in)
	}
	for i := range setup.Clients {
		c := &client{Client: w.Client(i)}
		c.Strategy = func() strategies.Strategy { return c.member.instance.strategy }
		c.body = func(ctx context.Context) { w.perform(ctx, c) }
		w.clients = append(w.clients, c)
	}
	w.last = &client{Client: w.LastClient()}
	w.Last = &w.last.Client
	w.last.Strategy = func() strategies.Strategy { return w.last.member.instance.strategy }
	w.last.body = func(ctx context.Context) { w.perform(ctx, w.last) }
	return w
}

func (m *member) role() codes.Role {
	if m.client != nil {
		return codes.RoleClient
	}
	return codes.RoleJob
}

// Begin implements [engine.Engine].
func (w *Engine) Begin() (err error) {
	defer w.caught("being opened", &err)
	w.scheduler.Reset()
	w.store.trace(nil)
	w.foot.due = false
	w.foot.noted = false
	if err := w.store.reset(w.scheduler); err != nil {
		return err
	}
	w.goroutines = runtime.NumGoroutine()
	w.sampled = w.runs < sampledRuns || w.runs%sampledEach == 0
	w.runs++
	w.branch.on = false
	w.branch.open = false
	if w.shared == nil || w.shared.Len() > 0 {
		w.shared = &strategies.Shared{}
	}
	w.actors = w.actors[:0]
	w.synced = 0
	w.sight = sight{}
	w.history = engine.Digest{}
	w.Fresh(w.start)
	for _, instance := range w.instances {
		instance.members = 0
		instance.lives = 0
		if err := w.open(instance); err != nil {
			return err
		}
	}
	if err := w.Setup.Provision(setupContext, w.instances[0].strategy, w.sel.Name); err != nil {
		return err
	}
	for _, instance := range w.instances {
		w.startJobs(instance, instance.index == 0)
	}
	w.last.member = nil
	w.last.Pending = -1
	for i, client := range w.clients {
		client.Pending = -1
		client.member = w.join(w.scheduler.Go(client.Name, client.body), w.instances[i%len(w.instances)], client)
		w.Run.Timeline.Column(engine.ClientColumn(i))
	}
	w.fused = w.canFuse()
	return nil
}

// setupKey marks the context under which instances are opened, set up and looked
// at, from outside of all actors.
type setupKey struct{}

var setupContext = context.WithValue(context.Background(), setupKey{}, true)

func (w *Engine) open(in *instance) error {
	in.jobs.Reset()
	in.source.SetState(in.begin + uint64(in.lives)) // a process that starts anew draws other numbers
	in.history = engine.Digest{}
	in.hidden = in.hidden[:0]
	if w.named[string(strategies.NeedRedis)] != w.store.client() { // which is the same in most runs
		w.named = map[string]any{string(strategies.NeedRedis): w.store.client()}
		for _, name := range w.sel.RedisNeeds() {
			w.named[string(name)] = w.store.client()
		}
	}
	env := strategies.Env{
		Clock: in.clock, TrueClock: w.clock, Rand: in.rand,
		Clients: w.named, Model: w.model, Shared: w.shared, Prefix: w.store.prefix(),
		Instance: in.index, Instances: w.Setup.Instances, Subjects: 1, Options: w.sel.Options, Wake: in.wake,
	}
	strategy, err := w.sel.Open(setupContext, env)
	if err != nil {
		return fmt.Errorf("open %s: %w", w.sel, err)
	}
	in.strategy = strategy
	in.screener, _ = strategy.(strategies.Screener)
	in.screens = false
	in.forgot = false
	if w.Setup.Has(quota.FaultCrash) {
		in.fresh, _ = w.hash(in, w.shared)
	}
	return nil
}

// screen looks at the tiers that only know who is over quota.
func (w *Engine) screen() {
	for _, instance := range w.instances {
		if w.branch.changed(instance) { // not in this step
			instance.forgot = false
			continue
		}
		if instance.screener != nil {
			now := instance.screener.Screens(engine.Subject)
			instance.screens, instance.forgot = now, instance.screens && !now
		}
	}
}

func (w *Engine) startJobs(in *instance, singletons bool) {
	j, ok := in.strategy.(strategies.Jobber)
	if !ok {
		return
	}
	mine := w.jobs[:0]
	for _, job := range j.Jobs() {
		if singletons || !job.Singleton {
			mine = append(mine, job)
		}
	}
	w.jobs = mine
	for i, actor := range in.jobs.Start(mine) {
		w.join(actor, in, nil)
		w.Run.Timeline.Column(w.jobColumn(actor, in, mine[i].Name))
	}
}

// jobColumn is a job of an instance in a timeline.
func (w *Engine) jobColumn(actor *sched.Actor, in *instance, job string) results.Column {
	column := results.Column{Name: actor.Name, Role: codes.RoleJob}
	if w.Setup.Instances > 1 {
		column.Label = job
		column.Instance = &in.index
	}
	return column
}

func (w *Engine) join(actor *sched.Actor, in *instance, c *client) *member {
	n := len(w.actors)
	w.actors = slices.Grow(w.actors, 1)[:n+1]
	if w.actors[n] == nil {
		w.actors[n] = &member{}
	}
	m := w.actors[n]
	*m = member{Actor: actor, instance: in, client: c}
	in.members++
	return m
}

// canFuse reports whether a client's start and its first command may be one step:
// nothing that happens in between could make a difference to it.
func (w *Engine) canFuse() bool {
	if w.Setup.Ticks() || w.Setup.HasFaultAt(engine.Asking) || w.Setup.Shares || w.sharesMemory() {
		return false
	}
	return !slices.ContainsFunc(w.instances, func(in *instance) bool { return in.members > 1 })
}

// sharesMemory reports whether instances see memory of each other that no
// statement of the model guards.
func (w *Engine) sharesMemory() bool {
	return w.shared.Len() > 0 && !w.sel.NeedsStore(strategies.NeedSource)
}

// perform is a client's body.
func (w *Engine) perform(ctx context.Context, c *client) {
	c.Perform(ctx, func() bool {
		pause := w.clock.NewEvent()
		pause.Set()
		return pause.Wait(ctx) == nil
	})
}

// caught turns a panic of the strategy's into an error.
func (w *Engine) caught(where string, err *error) {
	switch p := recover().(type) {
	case nil:
	case *sched.Panic:
		*err = &engine.PanicError{Where: p.Actor, Value: p.Value, Stack: p.Stack}
	default:
		*err = &engine.PanicError{Where: where, Value: p, Stack: debug.Stack()}
	}
}

// End implements [engine.Engine].
func (w *Engine) End() error {
	w.outlives()
	w.scheduler.Reset()
	if !w.known && runtime.NumGoroutine() > w.goroutines {
		runtime.Gosched() // so that goroutines of the strategy get to the store before the search ends
	}
	if w.scheduler.Foreign() {
		w.Witness.Note(witness.OwnGoroutine, "a command"+ownGoroutine)
	}
	return nil
}

// Close implements [engine.Engine].
func (w *Engine) Close() error {
	err := w.End()
	w.scheduler.Close()
	return errors.Join(err, w.store.close())
}
