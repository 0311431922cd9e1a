package sim

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/internal/trouble/tamper"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// onTime makes each change of a plan when its time has come. An error ends that.
func onTime(ctx context.Context, d *drive, plan trouble.List, change func(*trouble.Event) error) {
	for _, event := range plan.InTime() {
		at, _ := event.When.Within(d.cfg.Duration)
		wait := d.epoch + int64(at) - d.now()
		if wait > 0 && d.clock.Sleep(ctx, time.Duration(wait)) != nil || d.ended() {
			return
		}
		d.changeErr = change(&event)
		if d.changeErr != nil {
			return
		}
	}
}

// change changes the limit in mid-run, as an operator would: for requests from then
// on, and in the stores, if the strategy keeps it there.
func (d *drive) change(ctx context.Context, limit int64, through []int) error {
	next := *d.policy
	next.Limit = limit
	subjects := d.site.LimitedSubjects(d.stream, len(d.truth.subjects))
	from := d.now()
	d.setLimit(&next, min(limit, d.policy.Limit), max(limit, d.policy.Limit))
	err := d.site.SetLimit(ctx, &next, subjects, through...)
	d.setLimit(&next, limit, limit)
	d.changes = append(d.changes, oracle.LimitChange{From: from - d.epoch, To: d.now() - d.epoch, Limit: limit})
	return err
}

// setLimit puts a policy in force, of which the stores may check requests against that
// many units, from the least to the most.
func (d *drive) setLimit(policy *quota.Policy, least, most int64) {
	d.policy = policy
	d.truth.policy = policy
	d.truth.change(least, most)
}

// change notes a policy with another limit.
func (t *truth) change(least, most int64) {
	t.least = least
	t.most = most
	t.changed++
}

// heldAgainst is the limit that a rejection is checked against: the lowest of the run if
// it has changed since the request.
func (t *truth) heldAgainst(a asked) int64 {
	if a.changed != t.changed {
		return t.lowest
	}
	return t.least
}

// allow brings what a subject may have in use up to the present: if the limit was
// lowered, what was in use then, until it is given back or leaves the window.
func (t *truth) allow(s *subject) {
	s.allowed = max(t.most, min(s.allowed, s.used-s.overrun))
}

// overwrite changes the strategy's counters in every Redis, in no time.
func (p *pass) overwrite(event *trouble.Event) error {
	for n := range p.site.tables {
		changed, err := p.site.overwrite(context.Background(), n, event)
		p.overwritten += changed
		if err != nil {
			return err
		}
	}
	return nil
}

// overwrite changes the counters in the Redis of that number.
func (st *site) overwrite(ctx context.Context, n int, event *trouble.Event) (int64, error) {
	prefix := st.prefix(n)
	if st.real != nil {
		keys, err := tamper.Keys(ctx, st.admin, prefix)
		if err != nil {
			return 0, err
		}
		return tamper.Apply(ctx, event, st.admin, prefix, keys)
	}
	storeHook{network: st.network, table: st.tables[n], server: st.redis[n]}.present()
	var keys []string
	for _, k := range st.tables[n].Keys(nil) {
		keys = append(keys, k.Name)
	}
	client := fakeredis.Client(st.tables[n])
	defer func() { _ = client.Close() }()
	return tamper.Apply(ctx, event, client, prefix, keys)
}
