package explore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/quotabench/quotabench/harness/oracle"
	"github.com/quotabench/quotabench/internal/sched"
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

	s         *sched.Scheduler
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
	strategy strategies.Strategy
	jobs     *sched.Jobs
	members  int
	lives    int // how often it has ended and started anew
}

// member is an actor with what it belongs to.
type member struct {
	*sched.Actor
	in *instance
	// client is nil for a job.
	client  *client
	prompts int
	// history stands for the actor's own variables.
	history digest
}

type client struct {
	index   int
	script  Script
	m       *member
	pending int // the operation in flight, or -1
}

func newWorld(sel strategies.Selection, cfg Config, st store, start time.Time) *world {
	w := &world{cfg: cfg, sel: sel, store: st, start: start}
	w.truth.policy, w.truth.initial = &w.cfg.Policy, cfg.Used
	return w
}

// begin makes a fresh run. Every run begins the same.
func (w *world) begin() error {
	w.end()
	w.s = sched.New(sched.Config{Start: w.start, SplitReplies: w.cfg.split(), Observe: w.observe})
	if err := w.store.reset(w.s); err != nil {
		return err
	}
	w.shared = &strategies.Shared{}
	w.model = strategies.NewModel(sched.Statement)
	w.instances, w.clients, w.actors = w.instances[:0], w.clients[:0], w.actors[:0]
	w.used, w.err = budget{}, nil
	w.steps, w.line = nil, nil
	w.truth.reset(w.start)
	ctx := context.Background()
	for i := range w.cfg.Instances {
		in := &instance{index: i}
		w.instances = append(w.instances, in)
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
		return fmt.Errorf("strategy %s cannot begin with units used", w.sel.Name)
	}
	for _, in := range w.instances {
		w.startJobs(in, in.index == 0)
	}
	for i := range w.cfg.Clients {
		c := &client{index: i, script: w.cfg.script(i), pending: -1}
		in := w.instances[i%len(w.instances)]
		a := w.s.Go(clientName(i), func(ctx context.Context) { w.run(ctx, c) })
		c.m = w.join(a, in, c)
		w.clients = append(w.clients, c)
	}
	w.fused = w.canFuse()
	return nil
}

func (w *world) open(ctx context.Context, in *instance) error {
	label := ""
	if w.cfg.Instances > 1 {
		label = fmt.Sprintf("%d:", in.index)
	}
	in.jobs = w.s.NewJobs(label)
	env := strategies.Env{
		Clock: w.s.Clock(w.skew(in.index)), Rand: rand.New(rand.NewPCG(1, uint64(in.index))), //nolint:gosec // has to repeat
		Redis: w.store.client(), Model: w.model, Shared: w.shared, Prefix: w.store.prefix(),
		Instance: in.index, Instances: w.cfg.Instances, Options: w.sel.Options, Wake: in.jobs.Wake,
	}
	s, err := w.sel.Open(ctx, env)
	if err != nil {
		return fmt.Errorf("open %s: %w", w.sel, err)
	}
	in.strategy = s
	return nil
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
	m := &member{Actor: a, in: in, client: c}
	in.members++
	w.actors = append(w.actors, m)
	return m
}

// canFuse reports whether a client's start and its first command may be one step:
// nothing that happens in between could make a difference to it.
func (w *world) canFuse() bool {
	if w.cfg.has(strategies.FaultClock) || w.sharesMemory() {
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
	var held *quota.Reservation
	for i, a := range c.script {
		if i > 0 {
			if held == nil && a.Kind != Take {
				continue
			}
			// Others may act before the client goes on, also where it is about to
			// give back what it was just told it has.
			pause := w.s.Clock(0).NewEvent()
			pause.Set()
			if err := pause.Wait(ctx); err != nil {
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

// end releases the run.
func (w *world) end() {
	if w.s != nil {
		w.s.Close()
	}
}
