package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/internal/trouble/tamper"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
)

// inForce is the policy that requests are made under at the moment, and the least limit
// that the store may check a request against that sees nothing else in force.
type inForce struct {
	policy *quota.Policy
	least  int64 // units
}

// putInForce puts a drive's policy in force as it is at the start, unless one is already.
func (d *drive) putInForce() { d.limit.CompareAndSwap(nil, &inForce{d.policy, d.policy.Limit}) }

// heldAgainst is the limit that a rejection is checked against, which was called while
// that policy was in force: the lowest of the run if it has changed since.
func (d *drive) heldAgainst(called *inForce) int64 {
	if d.limit.Load() != called {
		return d.lowest
	}
	return called.least
}

// operator changes the limit in mid-run, as an operator would: for requests from then
// on, and in the store, if the strategy keeps it there.
type operator struct {
	drive   *drive
	session *harness.Session
	made    []oracle.LimitChange
	err     error
}

// schedule plans the changes of a pass that starts now and lasts for length. The
// returned function waits for a change that is being made, and gives up the rest.
func (o *operator) schedule(ctx context.Context, plan trouble.List, length time.Duration) (stop func()) {
	if len(plan) == 0 {
		return func() {}
	}
	o.drive.putInForce() // a change may come before the pass has begun to run
	return onTime(o.drive.timebase, plan, length, &o.err, func(event *trouble.Event) error {
		return o.change(ctx, event.What.Units)
	})
}

// onTime makes each change of a plan when its time has come in a pass that starts now and
// lasts for length, and leaves in err what ends that. The returned function waits for a
// change that is being made, and gives up the rest.
func onTime(timebase *timebase, plan trouble.List, length time.Duration, err *error,
	change func(*trouble.Event) error) (stop func()) {
	begun := timebase.nano()
	return clock.Aside(func(wait func(time.Duration) bool) {
		for _, event := range plan.InTime() {
			at, _ := event.When.Within(length)
			if !wait(at - time.Duration(timebase.nano()-begun)) {
				return
			}
			*err = change(&event)
			if *err != nil {
				return
			}
		}
	})
}

func (o *operator) change(ctx context.Context, limit int64) error {
	drive := o.drive
	next := *drive.limit.Load().policy
	least := min(next.Limit, limit)
	next.Limit = limit
	subjects := o.session.LimitedSubjects(drive.stream, drive.subjects.count)
	from := drive.timebase.nano()
	drive.limit.Store(&inForce{&next, least})
	_, err := guard.Within(ctx, 4*o.session.Deadline, guard.Grace(o.session.Deadline), "changing the limit",
		func(ctx context.Context) (any, error) {
			return nil, o.session.SetLimit(ctx, &next, subjects, 0)
		})
	drive.limit.Store(&inForce{&next, limit})
	o.made = append(o.made, oracle.LimitChange{From: from, To: drive.timebase.nano(), Limit: limit})
	return err
}

// changes are the changes made, since the epoch. One before the first request is in force from the start.
func (o *operator) changes(epoch int64) (out []oracle.LimitChange) {
	for _, change := range o.made {
		change.From = max(0, change.From-epoch)
		change.To = max(0, change.To-epoch)
		out = append(out, change)
	}
	return out
}

// overwrite plans changes of the strategy's counters in a pass that starts now, each over a connection of its own. The
// returned function waits for one that is being made, and gives up the rest.
func (p *pass) overwrite(ctx context.Context) (stop func()) {
	plan := p.measurement.cfg.Trouble.Of(trouble.Tamper)
	return onTime(p.drive.timebase, plan, p.measurement.cfg.Duration, &p.overwriting, func(event *trouble.Event) error {
		return p.overwriteOnce(ctx, event)
	})
}

func (p *pass) overwriteOnce(ctx context.Context, event *trouble.Event) error {
	store := p.site.stores[string(p.site.Selection.RedisNeeds()[0])]
	conn, err := store.Connect(ctx, p.site.scope, stores.ConnOptions{Pool: 1})
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // what it sent was answered
	client, ok := conn.Client().(redis.UniversalClient)
	if !ok {
		return fmt.Errorf("the client of %s is no Redis client", store.Driver())
	}
	prefix := p.site.scope.Prefix()
	keys, err := tamper.Keys(ctx, client, prefix)
	if err != nil {
		return err
	}
	n, err := tamper.Apply(ctx, event, client, prefix, keys)
	p.overwritten += n
	return err
}
