// Package advice reads the commands that a strategy sends to Redis, and gives advice on what of them fails in
// production.
package advice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/internal/fakeredis/hooks"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

const (
	limit    = 10 // units
	windows  = 4  // that are driven
	subjects = 3
	asked    = 15 // requests of a subject in a window
	prefix   = "advice:"
	// ahead is how far the callers' clock is ahead of Redis', and near how close a number comes to a clock that it tells.
	ahead, near = 40 * time.Second, 20 * time.Second
)

// driver has one strategy decide under one policy.
type driver struct {
	quota.Clock
	found  []results.Advice // under all policies
	policy quota.Policy
	sel    strategies.Selection
	jobs   []*harness.Job

	mu      sync.Mutex
	now     time.Time
	mini    []*miniredis.Miniredis
	clients []*redis.Client
	scripts map[string]string // sources by digest
	content map[key]string
	last    map[key]sent  // the commands that changed a key last
	mortal  map[key]sent  // the first that left it without a time to live
	lived   map[key]bool  // it had one at some time
	sizes   map[key][]int // its entries, at the ends of windows
}

// key is one of a store.
type key struct {
	store int
	name  string
}

// most is how long one strategy may take. It takes milliseconds.
const most = 30 * time.Second

// Run drives a strategy against a Redis in memory, under the policy, or under one of each kind of window that it serves
// if that is the zero value. There is no advice on strategies with other stores. An error means that the strategy
// failed there.
func Run(ctx context.Context, sel strategies.Selection, asked quota.Policy) ([]results.Advice, error) {
	if !reads(sel) {
		return nil, nil
	}
	drive := func(ctx context.Context) ([]results.Advice, error) { return driven(ctx, sel, asked) }
	return guard.Within(ctx, most, guard.Grace(most), "its commands are read", drive)
}

// RunApart is [Run] in a process of its own for a limiter that may start goroutines, whose panic would end this one.
func RunApart(ctx context.Context, sel strategies.Selection, asked quota.Policy) ([]results.Advice, error) {
	if !sel.Foreign || !reads(sel) {
		return Run(ctx, sel, asked)
	}
	strategy, err := isolate.Told(sel, &asked)
	if err != nil {
		return nil, err
	}
	return isolate.Run[struct{}, []results.Advice](ctx, "", isolatedKind, &task{strategy, asked}, func(struct{}) {})
}

const isolatedKind = "isolated-advice"

func init() { isolate.Handle(isolatedKind, doTask) }

// task is what a process of its own is given.
type task struct {
	Strategy isolate.Strategy
	Policy   quota.Policy
}

func doTask(ctx context.Context, t *task, _ func(any) error) ([]results.Advice, error) {
	sel, err := t.Strategy.Select(&t.Policy)
	if err != nil {
		return nil, err
	}
	return Run(ctx, sel, t.Policy)
}

// reads reports whether all stores of a strategy are Redis, or a source of truth that has a model in memory.
func reads(sel strategies.Selection) bool {
	for _, need := range sel.Needs {
		if need != strategies.NeedSource && !slices.Contains(sel.RedisNeeds(), need) {
			return false
		}
	}
	return len(sel.RedisNeeds()) > 0
}

func driven(ctx context.Context, sel strategies.Selection, asked quota.Policy) ([]results.Advice, error) {
	var found []results.Advice
	for _, policy := range served(sel, asked) {
		d := driver{
			Clock: clock.Wall{}, found: found, policy: policy, sel: sel, now: time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC),
			scripts: map[string]string{}, content: map[key]string{}, last: map[key]sent{}, mortal: map[key]sent{},
			lived: map[key]bool{}, sizes: map[key][]int{},
		}
		if sel.Foreign { // it reads the clock of package time
			d.now = clock.Wall{}.Now()
		}
		if err := errors.Join(d.drive(ctx), d.close()); err != nil {
			return nil, fmt.Errorf("%s under %s: %w", sel, policy, err)
		}
		found = d.found
	}
	return found, nil
}

// served is the policy that was asked for, with a small limit, if the strategy serves it so. If none was, there is one
// for each kind of window that the strategy serves. One that knows no windows is driven with a standing quota if it can
// be: its counters must not expire.
func served(sel strategies.Selection, asked quota.Policy) (out []quota.Policy) {
	if asked.Limit > 0 {
		asked.Limit = limit
		if sel.ServesPolicy(&asked) != nil {
			return nil
		}
		return []quota.Policy{asked}
	}
	kinds := sel.Kinds
	if sel.Reset == strategies.ResetsNever && slices.Contains(kinds, quota.Standing) {
		kinds = []quota.Kind{quota.Standing}
	}
	for _, k := range kinds {
		own := quota.Policy{Name: "advice", Unit: "requests", Limit: limit, Window: quota.Window{Kind: k}}
		if k.HasLength() {
			own.Window.Length = time.Hour
		}
		if k == quota.Bucket {
			own.Window.Refill = limit
		}
		for _, policy := range append([]quota.Policy{own}, quota.Policies()...) {
			policy.Limit = limit
			if policy.Window.Kind == k && sel.ServesPolicy(&policy) == nil {
				out = append(out, policy)
				break
			}
		}
	}
	return out
}

// Now implements [quota.Clock].
func (d *driver) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// Sleep implements [quota.Clock]: it passes at once.
func (d *driver) Sleep(ctx context.Context, duration time.Duration) error {
	d.pass(max(0, duration))
	return ctx.Err()
}

func (d *driver) pass(duration time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(duration)
	for _, miniredis := range d.mini {
		miniredis.SetTime(d.now.Add(-ahead))
		miniredis.FastForward(duration)
	}
}

// Furnish gives an instance clients of its own.
func (d *driver) Furnish(_ context.Context, env *strategies.Env) error {
	env.Clock = d
	env.Prefix = prefix
	env.Clients = map[string]any{}
	env.Wake = func(string) {} // the jobs run at the end of each window
	if d.sel.NeedsStore(strategies.NeedSource) {
		env.Model = strategies.NewModel(nil)
	}
	for i, need := range d.sel.RedisNeeds() {
		if i == len(d.mini) {
			m, err := miniredis.Run()
			if err != nil {
				return err
			}
			d.mu.Lock()
			d.mini = append(d.mini, m)
			d.mu.Unlock()
			d.pass(0)
		}
		client := redis.NewClient(&redis.Options{Addr: d.mini[i].Addr(), MaxRetries: -1})
		client.AddHook(hooks.Redis(d.sends))
		d.clients = append(d.clients, client)
		env.Clients[string(need)] = client
	}
	return nil
}

// Adopt keeps the jobs.
func (d *driver) Adopt(_ int, jobs []*harness.Job) error {
	d.jobs = append(d.jobs, jobs...)
	return nil
}

func (d *driver) close() (err error) {
	for _, client := range d.clients {
		err = errors.Join(err, client.Close())
	}
	for _, miniredis := range d.mini {
		miniredis.Close()
	}
	return err
}

// drive asks for more than the limit in several windows, gives some of it back, and looks at what is left.
func (d *driver) drive(ctx context.Context) (err error) {
	session := &harness.Session{Plan: &harness.Plan{Seed: 1}, Selection: d.sel}
	if err := session.Open(ctx, 2, 1, d); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	if provisioner, ok := session.Instances[0].(strategies.Provisioner); ok {
		var grants []strategies.Grant
		for i := range subjects {
			grants = append(grants, strategies.Grant{Subject: subject(i), Limit: limit})
		}
		if err := provisioner.Provision(ctx, &d.policy, grants); err != nil {
			return err
		}
		clear(d.mortal) // an operator's keys stay
	}
	for w := range windows {
		for i := range asked * subjects {
			if err := d.ask(ctx, session.Instances[i%2], i%subjects, uint64(w*1000+i+1)); err != nil {
				return err
			}
		}
		for _, j := range d.jobs {
			if _, err := j.Run(ctx); err != nil {
				return fmt.Errorf("job %s: %w", j.Name, err)
			}
		}
		d.measure()
		if end := d.policy.Window.At(d.Now()).End; !end.IsZero() {
			d.pass(end.Sub(d.Now()) + time.Second)
		} else {
			d.pass(cmp.Or(d.policy.Window.Length, time.Minute) + time.Second)
		}
	}
	d.judge()
	return nil
}

func subject(i int) quota.Subject { return quota.Subject(fmt.Sprintf("subject-%c", 'a'+i)) }

// ask asks for one decision. Of five that are admitted, one is given back and one is committed.
func (d *driver) ask(ctx context.Context, strategy strategies.Strategy, of int, id uint64) error {
	request := quota.Request{ID: id, Subject: subject(of), Policy: &d.policy, Units: 1, Settles: d.sel.GivesBack}
	got, err := strategy.Take(ctx, request)
	if err != nil && !strategies.IsPrescribed(err) {
		return err
	}
	refunder, refunds := strategy.(strategies.Refunder)
	committer, commits := strategy.(strategies.Committer)
	switch {
	case err != nil || !got.Admitted:
	case refunds && (id%5 == 0 || d.policy.Window.Kind == quota.Standing && id%5 > 1):
		return refunder.Refund(ctx, got.Reservation)
	case commits && id%5 == 1:
		return committer.Commit(ctx, got.Reservation, 1)
	}
	return nil
}
