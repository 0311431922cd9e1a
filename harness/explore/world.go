package explore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// subject is the one that all clients share; others would only be independent.
const subject = quota.Subject("s")

// Errors that injected faults give, as a client library reports them.
var (
	errLost = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	errGone = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
)

// world is one strategy with its clients and stores, run through one schedule
// after the other.
type world struct {
	cfg   Config
	sel   strategies.Selection
	store store
	start time.Time
	fused bool
	// recording has steps described, for timelines.
	recording bool
	// blind leaves histories alone.
	blind bool
	// seen are the states that a search has met.
	seen map[digest]struct{}
	// lacking, where not nil, is an error once the store has met a command that it
	// does not have.
	lacking func() error

	s         *sched.Scheduler
	workers   sched.Workers
	memory    memory
	shared    *strategies.Shared
	model     *strategies.Model
	instances []*instance
	clients   []*client
	actors    []*member // by actor ID
	truth     truth
	used      budget
	err       error // what the run itself ran into
	steps     []Step
	line      *Step // being recorded
}

// budget is what a schedule has used up.
type budget struct {
	crash, lost, retry, outage, evict, tick int
	// synced is the period of a periodic job that has run.
	synced time.Duration
}

// instance is one application instance.
type instance struct {
	index    int
	label    string // that its jobs' names begin with
	clock    quota.Clock
	pcg      *rand.PCG
	rand     *rand.Rand // over pcg
	strategy strategies.Strategy
	jobs     *sched.Jobs
	members  int
	lives    int // how often it has ended and started anew
	// screens is set while a tier of its own rejects the subject; forgot, where the
	// last step has ended that.
	screens, forgot bool
}

// member is an actor with what it belongs to.
type member struct {
	*sched.Actor
	in *instance
	// client is nil for a job.
	client *client
	// history stands for the actor's own variables.
	history digest
}

type client struct {
	index   int
	name    string
	body    func(ctx context.Context)
	script  Script
	m       *member
	pending int // the operation in flight, or -1
}

func newWorld(sel strategies.Selection, cfg Config, st store, start time.Time) *world {
	w := &world{cfg: cfg, sel: sel, store: st, start: start, model: strategies.NewModel(sched.Statement)}
	w.truth.policy, w.truth.initial = &w.cfg.Policy, cfg.Used
	w.s = sched.New(sched.Config{Start: start, SplitReplies: w.cfg.split(), Observe: w.observe, Workers: &w.workers})
	for i := range cfg.Instances {
		in := &instance{index: i, clock: w.s.Clock(w.skew(i)), pcg: new(rand.PCG)}
		if cfg.Instances > 1 {
			in.label = fmt.Sprintf("%d:", i)
		}
		in.rand = rand.New(in.pcg) //nolint:gosec // has to repeat
		w.instances = append(w.instances, in)
	}
	for i := range cfg.Clients {
		c := &client{index: i, name: clientName(i), script: w.cfg.script(i)}
		c.body = func(ctx context.Context) { w.run(ctx, c) }
		w.clients = append(w.clients, c)
	}
	return w
}

// begin makes a fresh run. Every run begins the same.
func (w *world) begin() error {
	w.s.Reset()
	if err := w.store.reset(w.s); err != nil {
		return err
	}
	w.shared = &strategies.Shared{}
	w.actors = w.actors[:0]
	w.used, w.err = budget{}, nil
	w.steps, w.line = nil, nil
	w.truth.reset(w.start)
	ctx := context.Background()
	for _, in := range w.instances {
		in.members, in.lives = 0, 0
		if err := w.open(ctx, in); err != nil {
			return err
		}
	}
	if p, ok := w.instances[0].strategy.(strategies.Provisioner); ok {
		grant := []strategies.Grant{{Subject: subject, Limit: w.cfg.Policy.Limit, Used: w.cfg.Used}}
		if err := p.Provision(ctx, &w.cfg.Policy, grant); err != nil {
			return fmt.Errorf("set the subject up: %w", err)
		}
	} else if w.cfg.Used > 0 {
		return &UnfitError{fmt.Errorf("strategy %s cannot begin with units used: leave them out", w.sel.Name)}
	}
	for _, in := range w.instances {
		w.startJobs(in, in.index == 0)
	}
	for i, c := range w.clients {
		c.pending = -1
		c.m = w.join(w.s.Go(c.name, c.body), w.instances[i%len(w.instances)], c)
	}
	w.fused = w.canFuse()
	return nil
}

func (w *world) open(ctx context.Context, in *instance) error {
	in.jobs = w.s.NewJobs(in.label)
	in.pcg.Seed(w.cfg.Seed, uint64(in.index))
	env := strategies.Env{
		Clock: in.clock, Rand: in.rand,
		Redis: w.store.client(), Model: w.model, Shared: w.shared, Prefix: w.store.prefix(),
		Instance: in.index, Instances: w.cfg.Instances, Subjects: 1, Options: w.sel.Options, Wake: in.jobs.Wake,
	}
	s, err := w.sel.Open(ctx, env)
	if err != nil {
		return fmt.Errorf("open %s: %w", w.sel, err)
	}
	in.strategy = s
	in.screens, in.forgot = false, false
	return nil
}

// screen looks at the tiers that only know who is over quota.
func (w *world) screen() {
	for _, in := range w.instances {
		if s, ok := in.strategy.(strategies.Screener); ok {
			now := s.Screens(subject)
			in.screens, in.forgot = now, in.screens && !now
		}
	}
}

func (w *world) skew(instance int) time.Duration {
	if instance < len(w.cfg.Skew) {
		return w.cfg.Skew[instance]
	}
	return 0
}

func (w *world) startJobs(in *instance, singletons bool) {
	j, ok := in.strategy.(strategies.Jobber)
	if !ok {
		return
	}
	var mine []strategies.Job
	for _, job := range j.Jobs() {
		if singletons || !job.Singleton {
			mine = append(mine, job)
		}
	}
	for _, a := range in.jobs.Start(mine) {
		w.join(a, in, nil)
	}
}

func (w *world) join(a *sched.Actor, in *instance, c *client) *member {
	n := len(w.actors)
	w.actors = slices.Grow(w.actors, 1)[:n+1]
	if w.actors[n] == nil {
		w.actors[n] = &member{}
	}
	m := w.actors[n]
	*m = member{Actor: a, in: in, client: c}
	in.members++
	return m
}

// canFuse reports whether a client's start and its first command may be one step:
// nothing that happens in between could make a difference to it.
func (w *world) canFuse() bool {
	if w.cfg.has(quota.FaultClock) || w.cfg.has(quota.FaultOutage) || w.sharesMemory() {
		return false
	}
	for _, in := range w.instances {
		if in.members > 1 {
			return false
		}
	}
	return true
}

// sharesMemory reports whether instances see memory of each other that no
// statement of the model guards.
func (w *world) sharesMemory() bool {
	return w.shared.Len() > 0 && !w.sel.NeedsStore(strategies.NeedSource)
}

func clientName(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprintf("client%d", i)
}

// run is a client.
func (w *world) run(ctx context.Context, c *client) {
	w.perform(ctx, c, func() bool {
		pause := w.s.Clock(0).NewEvent()
		pause.Set()
		return pause.Wait(ctx) == nil
	})
}

// perform goes through a client's script. pause reports whether to go on.
func (w *world) perform(ctx context.Context, c *client, pause func() bool) {
	var held *quota.Reservation
	for i, a := range c.script {
		if i > 0 {
			if held == nil && a.Kind != Take {
				continue
			}
			// Others may act before the client goes on, also where it is about to
			// give back what it was just told it has.
			if !pause() {
				return
			}
		}
		switch a.Kind {
		case Take:
			held = w.take(ctx, c, i, a.Units)
		case Commit:
			w.commit(ctx, c, held, a.Units)
		case Refund:
			w.refund(ctx, c, held)
			held = nil
		}
	}
}

func (w *world) take(ctx context.Context, c *client, action int, units int64) *quota.Reservation {
	req := quota.Request{ID: uint64(c.index*maxActions + action + 1), Subject: subject, Policy: &w.cfg.Policy, Units: units, Settles: c.script.settles(action)}
	c.pending = w.truth.call(c.index, oracle.Take, units)
	d, err := c.m.in.strategy.Take(ctx, req)
	e := c.pending
	c.pending = -1
	switch {
	case err != nil:
		w.truth.reply(c.index, e, oracle.Failed)
		w.say("error: " + err.Error())
		return nil
	case d.Admitted:
		w.truth.reply(c.index, e, oracle.Admitted)
		w.say(verdictText("admitted", d))
		r := d.Reservation
		r.Request = req // strategies that settle nothing leave it out
		return &r
	case d.Degraded:
		w.truth.reply(c.index, e, oracle.RejectedDegraded)
	default:
		w.truth.reply(c.index, e, oracle.Rejected)
	}
	w.say(verdictText("rejected", d))
	return nil
}

func verdictText(what string, d quota.Decision) string {
	if d.Degraded {
		return what + " without its store"
	}
	return what
}

func (w *world) commit(ctx context.Context, c *client, r *quota.Reservation, actual int64) {
	k, ok := c.m.in.strategy.(strategies.Committer)
	if !ok {
		return
	}
	if actual == 0 {
		actual = r.Request.Units
	}
	c.pending = w.truth.call(c.index, oracle.Commit, r.Request.Units-actual)
	err := k.Commit(ctx, *r, actual)
	r.Committed = true
	w.settled(c, "committed", err)
}

func (w *world) refund(ctx context.Context, c *client, r *quota.Reservation) {
	k, ok := c.m.in.strategy.(strategies.Refunder)
	if !ok {
		return
	}
	c.pending = w.truth.call(c.index, oracle.Refund, r.Request.Units)
	err := k.Refund(ctx, *r)
	if err != nil {
		w.say("error, and tries again")
		err = k.Refund(ctx, *r)
	}
	w.settled(c, "refunded", err)
}

func (w *world) settled(c *client, what string, err error) {
	e := c.pending
	c.pending = -1
	if err != nil {
		w.truth.reply(c.index, e, oracle.Failed)
		w.say("error: " + err.Error())
		return
	}
	w.truth.reply(c.index, e, oracle.Admitted)
	w.say(what)
}

// close releases what runs have left.
func (w *world) close() {
	w.end()
	w.workers.Close()
}

// end releases the run.
func (w *world) end() { w.s.Reset() }
