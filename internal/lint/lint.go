// Package lint reads the commands that a strategy sends to Redis, and says what of them fails in production.
package lint

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
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/hooks"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Code is slots, caller-clock, no-ttl, ttl-gap or unbounded.
	Code string `json:"code"`
	// Policy under which it shows first.
	Policy string `json:"policy"`
	Text   string `json:"text"`
	// Command that shows it.
	Command string `json:"command"`
}

// Report is what the commands of one strategy look like.
type Report struct {
	Strategy string `json:"strategy"`
	// Skipped says why it could not be driven; empty if it was.
	Skipped string `json:"skipped,omitempty"`
	// Decisions that were asked for, and the commands and the round trips of all of them.
	Decisions  int `json:"decisions"`
	Commands   int `json:"commands"`
	RoundTrips int `json:"round_trips"`
	// MostCommands and MostRoundTrips are those of one decision.
	MostCommands   int `json:"most_commands"`
	MostRoundTrips int `json:"most_round_trips"`
	// MostKeys is how many keys one command or transaction names, at most.
	MostKeys int       `json:"most_keys"`
	Findings []Finding `json:"findings"`
}

const (
	limit    = 10 // units
	windows  = 4  // that are driven
	subjects = 3
	asked    = 15 // requests of a subject in a window
	prefix   = "lint:"
	// ahead is how far the callers' clock is ahead of Redis', and near how close a number comes to a clock that it tells.
	ahead, near = 40 * time.Second, 20 * time.Second
)

// driver has one strategy decide under one policy.
type driver struct {
	quota.Clock
	report *Report
	policy quota.Policy
	sel    strategies.Selection
	jobs   []*harness.Job

	mu      sync.Mutex
	now     time.Time
	mini    []*miniredis.Miniredis
	clients []*redis.Client
	scripts map[string]string // sources by digest
	trips   int               // of the decision under way
	sent    int
	content map[key]string
	last    map[key]string // the command that changed a key last
	mortal  map[key]string // the first that left it without a time to live
	lived   map[key]bool   // it had one at some time
	sizes   map[key][]int  // its entries, at the ends of windows
}

// key is one of a store.
type key struct {
	store int
	name  string
}

// Run drives a strategy against a Redis in memory, under a policy of each kind of window that it serves. An error means that
// it failed there.
func Run(ctx context.Context, sel strategies.Selection) (Report, error) {
	r := Report{Strategy: sel.String(), Findings: []Finding{}}
	for _, n := range sel.Needs {
		if n != strategies.NeedSource && !slices.Contains(sel.RedisNeeds(), n) {
			r.Skipped = "it needs " + string(n) + ", and lint reads commands to Redis alone"
		}
	}
	policies := served(sel)
	switch {
	case r.Skipped != "":
	case len(sel.RedisNeeds()) == 0:
		r.Skipped = "it sends no commands to Redis"
	case len(policies) == 0:
		r.Skipped = fmt.Sprintf("it serves no policy of %d units", limit)
	}
	if r.Skipped != "" {
		return r, nil
	}
	for _, p := range policies {
		d := driver{Clock: clock.Wall{}, report: &r, policy: p, sel: sel, now: time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC),
			scripts: map[string]string{}, content: map[key]string{}, last: map[key]string{}, mortal: map[key]string{},
			lived: map[key]bool{}, sizes: map[key][]int{}}
		if sel.Foreign { // it reads the clock of package time
			d.now = clock.Wall{}.Now()
		}
		if err := errors.Join(d.drive(ctx), d.close()); err != nil {
			return r, fmt.Errorf("%s under %s: %w", sel, p, err)
		}
	}
	return r, nil
}

// served are policies of a small limit, one for each kind of window that the strategy serves. One that knows no windows is
// driven with a standing quota if it can be: its counters must not expire.
func served(sel strategies.Selection) (out []quota.Policy) {
	kinds := sel.Kinds
	if sel.Reset == strategies.ResetsNever && slices.Contains(kinds, quota.Standing) {
		kinds = []quota.Kind{quota.Standing}
	}
	for _, k := range kinds {
		own := quota.Policy{Name: "lint", Unit: "requests", Limit: limit, Window: quota.Window{Kind: k}}
		if k.HasLength() {
			own.Window.Length = time.Hour
		}
		if k == quota.Bucket {
			own.Window.Refill = limit
		}
		for _, p := range append([]quota.Policy{own}, quota.Policies()...) {
			if p.Limit = limit; p.Window.Kind == k && sel.ServesPolicy(&p) == nil {
				out = append(out, p)
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
func (d *driver) Sleep(ctx context.Context, by time.Duration) error {
	d.pass(max(0, by))
	return ctx.Err()
}

func (d *driver) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
	for _, m := range d.mini {
		m.SetTime(d.now.Add(-ahead))
		m.FastForward(by)
	}
}

// Furnish gives an instance clients of its own.
func (d *driver) Furnish(_ context.Context, env *strategies.Env) error {
	env.Clock, env.Prefix, env.Clients = d, prefix, map[string]any{}
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
		c := redis.NewClient(&redis.Options{Addr: d.mini[i].Addr(), MaxRetries: -1})
		c.AddHook(hooks.Redis(d.sends))
		d.clients = append(d.clients, c)
		env.Clients[string(need)] = c
	}
	return nil
}

// Adopt keeps the jobs.
func (d *driver) Adopt(_ int, jobs []*harness.Job) error {
	d.jobs = append(d.jobs, jobs...)
	return nil
}

func (d *driver) close() (err error) {
	for _, c := range d.clients {
		err = errors.Join(err, c.Close())
	}
	for _, m := range d.mini {
		m.Close()
	}
	return err
}

// drive asks for more than the limit in several windows, gives some of it back, and looks at what is left.
func (d *driver) drive(ctx context.Context) (err error) {
	s := &harness.Session{Plan: &harness.Plan{Seed: 1}, Selection: d.sel}
	if err := s.Open(ctx, 2, 1, d); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if p, ok := s.Instances[0].(strategies.Provisioner); ok {
		var grants []strategies.Grant
		for i := range subjects {
			grants = append(grants, strategies.Grant{Subject: subject(i), Limit: limit})
		}
		if err := p.Provision(ctx, &d.policy, grants); err != nil {
			return err
		}
		clear(d.mortal) // an operator's keys stay
	}
	for w := range windows {
		for i := range asked * subjects {
			if err := d.ask(ctx, s.Instances[i%2], i%subjects, uint64(w*1000+i+1)); err != nil {
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
func (d *driver) ask(ctx context.Context, s strategies.Strategy, of int, id uint64) error {
	d.begin()
	q := quota.Request{ID: id, Subject: subject(of), Policy: &d.policy, Units: 1, Settles: d.sel.GivesBack}
	got, err := s.Take(ctx, q)
	d.end()
	if err != nil && !strategies.IsPrescribed(err) {
		return err
	}
	refunder, refunds := s.(strategies.Refunder)
	committer, commits := s.(strategies.Committer)
	switch {
	case err != nil || !got.Admitted:
	case refunds && (id%5 == 0 || d.policy.Window.Kind == quota.Standing && id%5 > 1):
		return refunder.Refund(ctx, got.Reservation)
	case commits && id%5 == 1:
		return committer.Commit(ctx, got.Reservation, 1)
	}
	return nil
}
