// Package service runs schedules of a service in any language: several instances of one
// command, each with a proxy of its own that holds what it sends to Redis. A client is one
// HTTP request at a time to its instance, and its steps are the commands that the instance
// sends while it has the request. What the process knows cannot be hashed, so the engine
// returns no state, and no two steps are known to be independent: every schedule is run to
// its end, with a subject of its own.
package service

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// wall is the clock of the instances and of their Redis.
var wall clock.Wall

// Engine is a service with its clients.
type Engine struct {
	engine.World
	sel       strategies.Selection
	cmd       Command
	base      context.Context // of the exploration
	password  string          // of the instances' proxies; empty for none
	instances []*instance
	callers   []*client
	snapshot  engine.Snapshot
	timer     *time.Timer
	// split has effect and reply of a command be two steps.
	split bool

	// subjects begins the names of all subjects, and subject is that of this run.
	subjects, subject string
	named             atomic.Int64
	// kept are keys that the instances made when they started.
	kept map[string]bool
	// memory is a Redis started here, or nil, lua runs its scripts, and now is its time and that of the history.
	memory *miniredis.Miniredis
	lua    *fakeredis.Scripts
	now    time.Time
	// lingers has keys whose deadline is the next moment stay, as a server does for a millisecond.
	lingers bool

	held []engine.Holding // of all other keys, with their real names, and
	seen bool             // set if no step has come since they were listed
	// deadlines are those of the keys that Redis stored at the last look in a recorded run.
	deadlines map[string]deadline
	// control is what the clients were answered one after the other, and runs counts those since.
	control []string
	runs    int
	*sets
	sql      *sql          // nil for none
	own      *redis.Client // of a further set; nil of the first
	occupied bool          // the next database holds keys, so that there are no further sets
	// lost is set if Redis has lost what the instances had loaded, and scripts is how many that were.
	lost    bool
	scripts string
	// commands counts those of all clients.
	commands int
	// outwaited is set once a late reply has come before its instance had given it up.
	outwaited bool
	// lives are what the first control has seen of the subject's keys, if the window is learned from them.
	lives lives
	// watches is set while commands after an answer are looked for, and afterAnswer is what was seen.
	watches     bool
	afterAnswer string
	// crowdTook is how long the requests of thousands of others took in the run, and doubted the instance that has
	// admitted a request after them; nil for none. timeTold is set once time alone was tried.
	crowdTook time.Duration
	doubted   *instance
	timeTold  bool
	// told is set once an error says how the service misbehaves: what follows from that is not told.
	told bool
	// failing says which instances do not work once the faults of the run are over, and how. fatal are the faults after
	// which one did not.
	failing []string
	fatal   map[string]bool
}

// Open starts the instances. The engine ends what it does when ctx is done, and can then
// still run again what was found.
func Open(ctx context.Context, sel strategies.Selection, setup engine.Setup, cmd Command) (*Engine, error) {
	w, err := open(ctx, sel, setup, cmd)
	if cmd.ClockIfAny && errors.Is(err, errGoesOn) {
		cmd.Clock = time.Time{}
		w, err = open(ctx, sel, setup, cmd)
	}
	return w, err
}

func open(ctx context.Context, sel strategies.Selection, setup engine.Setup, cmd Command) (*Engine, error) {
	if !cmd.Clock.IsZero() {
		faketime, err := programs.Named("faketime").Path()
		if err != nil {
			return nil, unfit("%w: %w", errGoesOn, err)
		}
		cmd.faketime = faketime
	}
	w := &Engine{sel: sel, cmd: cmd, sets: &sets{ctx: ctx}}
	w.Witness = witness.New(witness.Config{Real: wall.Now(), Virtual: engine.Start})
	w.Connect(w, &setup)
	return w.openAll()
}

// openAll starts the instances of an engine that knows what to run.
func (w *Engine) openAll() (_ *Engine, err error) {
	w.base = w.ctx
	w.timer = time.NewTimer(time.Hour)
	w.kept = map[string]bool{}
	w.fatal = map[string]bool{}
	w.sees()
	w.subjects = "s" + strings.ToLower(crand.Text()[:6])
	w.split = w.Setup.HasFaultAt(engine.Answering)
	w.Run.Aborts = map[results.Property]int{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	version, err := w.emptyRedis()
	if err != nil {
		return nil, err
	}
	if w.cmd.Redis.Options().Password != "" { // a way to it is not for other programs of the machine
		w.password = crand.Text()
	}
	if err := w.moves(w.Setup.Begins()); err != nil {
		return nil, err
	}
	if w.cmd.Postgres != nil {
		w.sql, err = openSQL(w.base, w.cmd.Postgres)
		if err != nil {
			return nil, err
		}
		version = w.sql.version() + " and " + version
	}
	w.Traits = engine.Traits{Store: version, Deadlines: true, Splits: w.split, Wall: true}
	for i := range w.Setup.Instances {
		if err := w.add(i); err != nil {
			return nil, err
		}
	}
	if err := w.startFirst(); err != nil {
		return nil, err
	}
	if err := w.stored(); err != nil {
		return nil, err
	}
	for _, holding := range w.held {
		if !strings.Contains(holding.Name, w.subjects) {
			w.kept[holding.Name] = true
		}
	}
	return w, w.check()
}

// check runs the control for the first time.
func (w *Engine) check() (err error) {
	w.control, err = w.watchedControl()
	if err != nil {
		return err
	}
	passed := func(in *instance) bool { return len(in.proxy.Passed()) > 0 }
	if w.commands == 0 && !slices.ContainsFunc(w.instances, passed) {
		return unfit("no command of the service came through the proxy, but it answers: does it use %s?", w.ways())
	}
	failed := func(event oracle.Event) bool { return event.Outcome == oracle.Failed }
	if slices.ContainsFunc(w.Run.Truth.Events(), failed) {
		return unfit("the service's answers to requests that come one after the other are no decisions: %s",
			strings.Join(w.control, ", "))
	}
	if err := w.checkLimit(); err != nil {
		return err
	}
	if err := w.learn(); err != nil {
		return err
	}
	if w.Setup.Has(engine.FaultTimeout) {
		return w.checkTimeout()
	}
	return nil
}

// Begin implements [engine.Engine].
func (w *Engine) Begin() error {
	if w.base.Err() != nil { // what was found is still run again
		w.base = context.WithoutCancel(w.base)
	}
	w.runs++
	if w.runs%ControlEvery == 0 {
		if err := w.Control(); err != nil {
			return err
		}
	}
	return w.begin()
}

// begin starts a run.
func (w *Engine) begin() error {
	if begins := w.Setup.Begins(); !w.now.Equal(begins) {
		if err := w.moves(begins); err != nil {
			return err
		}
	}
	if w.lost {
		if err := w.restore(); err != nil {
			return err
		}
	}
	for _, instance := range w.instances {
		if instance.child != nil && (w.renew.Load() || instance.child.Ended()) {
			if err := instance.end(); err != nil {
				return err
			}
		}
	}
	if err := w.restoreTables(); err != nil {
		return err
	}
	if err := w.startAll(); err != nil {
		return err
	}
	w.subject = string(w.newSubject())
	w.Fresh(w.now)
	w.deadlines = nil
	w.crowdTook = 0
	w.doubted = nil
	if err := w.use(); err != nil {
		return err
	}
	w.seen = false
	if w.Setup.Learns {
		w.Setup.Policy.Window.Length = w.lives.window()
	}
	w.callers = w.callers[:0]
	for i := range w.Setup.Clients {
		c := w.newClient(i)
		w.callers = append(w.callers, c)
		c.ctx, c.cancel = context.WithCancel(w.base)
		// The fault timeout would befall it while it waits, its clock would stand, of clients that share an instance the
		// order counts, and those that come one after the other do so by the clocks that they send, too.
		if !w.InTurn && !w.Setup.Has(engine.FaultTimeout) && !w.follows() && !c.shares() {
			c.send()
		}
	}
	return nil
}

// newClient is the i-th client of a run. The instances have the clients in turns.
func (w *Engine) newClient(i int) *client {
	instance := w.instances[i%len(w.instances)]
	w.Run.Timeline.Column(engine.ClientColumn(i))
	c := &client{engine: w, instance: instance, strategy: instance.strategy, child: instance.child,
		stops: make(chan stop, 1), Client: w.Client(i)}
	c.Strategy = func() strategies.Strategy { return c }
	c.resume = make(chan struct{})
	c.quit = make(chan struct{})
	c.gone = make(chan struct{})
	c.Over = c.over
	c.Turn = func() { c.halt(answered) }
	return c
}

// nameOf is the name that a subject of a script has in this run.
func (w *Engine) nameOf(subject quota.Subject) quota.Subject {
	return quota.Subject(w.subject) + quota.Subject(strings.TrimPrefix(string(subject), string(engine.Subject)))
}

// newSubject is one that was not used before.
func (w *Engine) newSubject() quota.Subject {
	return quota.Subject(fmt.Sprintf("%sx%07d", w.subjects, w.named.Add(1)))
}

// use takes the units that are in use at the start.
func (w *Engine) use() error {
	for i := range w.Setup.Used {
		ctx, cancel := context.WithTimeout(w.base, w.Setup.Patience)
		instance := w.instances[i%int64(len(w.instances))]
		decision, err := instance.strategy.Take(ctx,
			quota.Request{Subject: quota.Subject(w.subject), Policy: &w.Setup.Policy, Units: 1})
		cancel()
		switch {
		case err != nil:
			return unfit("the service's answer to request %d of %d, which come one after the other, is no decision: %v", i+1,
				w.Setup.Used, err)
		case !decision.Admitted:
			return unfit("the service rejects request %d of %d that come one after the other: its limit is lower than --limit",
				i+1, w.Setup.Used)
		}
	}
	return nil
}

// End implements [engine.Engine]. A run that is not over goes on by itself first, and an
// instance that does not get through is killed.
func (w *Engine) End() error {
	var errs []error
	for _, client := range w.callers {
		if client.stuck != "" && client.instance.child != nil {
			errs = append(errs, client.instance.end())
		}
	}
	for _, instance := range w.instances { // all at once: one may wait for a lock of another
		instance.proxy.Hold(false)
	}
	for _, client := range w.callers {
		if !client.over() { // one that has crashed is gone
			client.leave()
		}
	}
	w.callers = w.callers[:0]
	w.failing = nil
	if w.doubted != nil {
		errs = append(errs, w.timeTells(w.doubted))
	}
	for _, instance := range w.instances {
		if passed := instance.proxy.Passed(); len(passed) > 0 {
			w.Witness.Note(witness.OtherClient, "it sent "+passed[0]+", which is no step here")
		}
		if w.told {
			continue
		}
		if instance.child != nil && instance.child.Ended() {
			errs = append(errs, w.misbehaves("the service ends in the middle: %s",
				instance.saying(fmt.Sprintf("instance %d has ended", instance.index))))
		}
		if foul := instance.proxy.Foul(); foul != nil {
			errs = append(errs, w.misbehaves("what goes between the service and its store is not the store's protocol: %v", foul))
		}
	}
	return errors.Join(append(errs, w.Err, w.clean())...)
}

// Close implements [engine.Engine].
func (w *Engine) Close() error {
	w.base = context.WithoutCancel(w.ctx) // keys are removed, too, when time is up
	var errs []error
	for _, instance := range w.instances {
		errs = append(errs, instance.end(), instance.proxy.Close())
	}
	if w.memory == nil && w.own == nil && len(w.instances) > 0 { // the database was empty, and the next search needs it so
		w.seen = false
		errs = append(errs, w.clean())
	}
	if w.memory != nil {
		errs = append(errs, w.cmd.Redis.Close())
		w.memory.Close()
		w.lua.Close()
	}
	if w.own != nil {
		if len(w.instances) > 0 { // the database was empty
			errs = append(errs, w.own.FlushDB(context.WithoutCancel(w.ctx)).Err())
		}
		errs = append(errs, w.own.Close())
	}
	return errors.Join(append(errs, w.sql.close())...)
}

// listing returns every key with its time to live in milliseconds.
const listing = `local out = {}
for i, k in ipairs(redis.call('KEYS', '*')) do out[i] = {k, redis.call('PTTL', k)} end
return out`

// stored lists the keys that are no instance's own, as they are stored.
func (w *Engine) stored() error {
	if w.seen {
		return nil
	}
	rows, err := w.cmd.Redis.Eval(w.base, listing, nil).Slice()
	if err != nil {
		return fmt.Errorf("list the keys of Redis: %w", err)
	}
	w.held = w.held[:0]
	for _, row := range rows {
		pair := row.([]any)
		if k := pair[0].(string); !w.kept[k] {
			left := pair[1].(int64)
			w.held = append(w.held, engine.Holding{Name: k, Forever: left == -1,
				Left: time.Duration(max(0, left)) * time.Millisecond})
		}
	}
	slices.SortFunc(w.held, func(a, b engine.Holding) int { return strings.Compare(a.Name, b.Name) })
	w.seen = true
	return nil
}

// clean removes the keys of the run: to empty the database would take Redis far longer than a schedule does.
func (w *Engine) clean() error {
	if err := w.stored(); err != nil || len(w.held) == 0 {
		return err
	}
	keys := make([]string, len(w.held))
	for i, holding := range w.held {
		keys[i] = holding.Name
	}
	return w.cmd.Redis.Unlink(w.base, keys...).Err()
}

// Holdings implements [engine.Engine]. Names hold the subject as records have it.
func (w *Engine) Holdings() (out []engine.Holding, err error) {
	err = w.stored()
	for _, holding := range w.held {
		if !w.earlier(holding.Name) {
			holding.Own = strings.Contains(holding.Name, w.subject)
			holding.Name = w.plain(holding.Name)
			out = append(out, holding)
		}
	}
	return out, err
}

// earlier reports whether a key, or the words of a command, are about a subject of an earlier run, whose request was
// answered before all was done.
func (w *Engine) earlier(words ...string) bool {
	names := func(subject string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, subject) })
	}
	return names(w.subjects) && !names(w.subject)
}

// plain has the subject's name in records in place of its real one.
func (w *Engine) plain(text string) string {
	return strings.ReplaceAll(text, w.subject, string(engine.Subject))
}

// Used implements [engine.Engine] by the counter that was named.
func (w *Engine) Used() ([]quota.Reading, bool) {
	if w.cmd.Counter == "" {
		return nil, false
	}
	units, err := w.cmd.Redis.Get(w.base, w.counter()).Int64()
	if err != nil && !errors.Is(err, redis.Nil) && w.Err == nil {
		w.Err = unfit("the key %s of --counter has no whole number: %v", w.plain(w.counter()), err)
	}
	return []quota.Reading{{Tier: quota.TierRedis, Units: units, Known: err == nil}}, true
}

func (w *Engine) counter() string { return strings.ReplaceAll(w.cmd.Counter, "{subject}", w.subject) }

// checkCounter sees whether there is such a key once the clients have come one after the other.
func (w *Engine) checkCounter() {
	if used, ok := w.Used(); !ok || w.Err != nil || used[0].Known {
		return
	}
	held, err := w.Holdings()
	names := format.List(held, ", ", func(holding engine.Holding) string { return holding.Name })
	w.Err = cmp.Or(err, unfit("no key is %s after requests that come one after the other: the keys are %s",
		w.plain(w.counter()),
		names))
}
