package strategytest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/verdict"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// book issues requests of one policy and writes down what came of them.
type book struct {
	*fixture
	policy *quota.Policy // in force
	limit  int64         // at the start
	epoch  int64
	// changes of the limit, which are all subjects' of the book.
	changes []oracle.LimitChange

	mu      sync.Mutex
	events  []oracle.Event
	initial map[uint32]int64
	// takes are the events of admitted requests, by the request's ID: what settles
	// one belongs to the window that it was charged to.
	takes map[uint64]oracle.Event
}

func (f *fixture) book(p *quota.Policy) *book {
	return &book{fixture: f, policy: p, limit: p.Limit, epoch: clock.Nano(), initial: map[uint32]int64{}, takes: map[uint64]oracle.Event{}}
}

// subject is a holder of the book's quota.
type subject struct {
	number uint32
	name   quota.Subject
}

// subject makes a new one, set up with the policy's limit and the units used at
// the start.
func (b *book) subject(used int64) subject {
	b.Helper()
	n := b.subjects.Add(1)
	return b.named(quota.Subject(fmt.Sprintf("subject-%d", n)), n, used)
}

func (b *book) named(name quota.Subject, n uint32, used int64) subject {
	b.Helper()
	s := subject{n, name}
	if p, ok := b.instances[0].(strategies.Provisioner); ok {
		grant := strategies.Grant{Subject: s.name, Limit: b.policy.Limit, Used: used}
		if err := p.Provision(b.ctx(), b.policy, []strategies.Grant{grant}); err != nil {
			b.Fatalf("setting up %q: %v", s.name, err)
		}
		b.initial[n] = used
	}
	return s
}

// try asks an instance for units and records the answer.
func (b *book) try(ctx context.Context, instance int, s subject, units int64) (quota.Decision, error) {
	req := quota.Request{ID: b.ids.Add(1), Subject: s.name, Policy: b.policy, Units: units}
	e := oracle.Event{Call: clock.Nano(), Units: units, Subject: s.number, Instance: uint8(instance)}
	alive.Add(1)
	d, err := b.instances[instance].Take(ctx, req)
	alive.Add(1)
	e.Reply = clock.Nano()
	granted := units
	if err == nil && d.Admitted {
		granted, err = d.Units(units)
		if err != nil {
			b.Errorf("%+v: %v", d, err)
		}
	}
	switch {
	case err != nil:
		e.Outcome = oracle.Failed
	case d.Admitted:
		e.Outcome = oracle.Admitted
		if granted < units {
			short := e
			short.Outcome = oracle.Short
			short.Units = units - granted
			b.record(req.ID, short)
			e.Units = granted
		}
	case d.Degraded:
		e.Outcome = oracle.RejectedDegraded
	default:
		e.Outcome = oracle.Rejected
	}
	b.record(req.ID, e)
	b.witness.Taken(err)
	if err == nil {
		req.Units = granted
		b.decent(req, d)
	}
	return d, err
}

// take is try, except that an error ends the test.
func (b *book) take(s subject, units int64) quota.Decision {
	b.Helper()
	d, err := b.try(b.ctx(), 0, s, units)
	if err != nil {
		b.Fatalf("asking for %d units: %v", units, err)
	}
	if d.Degraded {
		b.Fatalf("%+v is degraded although every store is there", d)
	}
	return d
}

// exhaust asks n times for one unit and counts what was admitted.
func (b *book) exhaust(s subject, n int64) (admitted int64, held []quota.Reservation) {
	b.Helper()
	for range n {
		if d := b.take(s, 1); d.Admitted {
			admitted++
			held = append(held, d.Reservation)
		}
	}
	return admitted, held
}

// refund gives units back; they are those that the oracle is told of.
func (b *book) refund(s subject, r quota.Reservation, units int64) error {
	e := oracle.Event{Kind: oracle.Refund, Call: clock.Nano(), Units: units, Subject: s.number}
	err := b.instances[0].(strategies.Refunder).Refund(b.ctx(), r)
	e.Reply = clock.Nano()
	b.record(r.Request.ID, e)
	return err
}

func (b *book) commit(s subject, r quota.Reservation, actual int64) error {
	e := oracle.Event{Kind: oracle.Commit, Call: clock.Nano(), Units: r.Request.Units - actual, Subject: s.number}
	err := b.instances[0].(strategies.Committer).Commit(b.ctx(), r, actual)
	e.Reply = clock.Nano()
	b.record(r.Request.ID, e)
	return err
}

// record writes down a take, or what settled the take of the request with that ID.
func (b *book) record(request uint64, e oracle.Event) {
	e.Call -= b.epoch
	e.Reply -= b.epoch
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case e.Kind != oracle.Take:
		take := b.takes[request]
		e.TakeCall = take.Call
		e.TakeReply = take.Reply
	case e.Outcome == oracle.Admitted:
		b.takes[request] = e
	}
	b.events = append(b.events, e)
}

// decent looks at what every decision must be, whatever strategy made it.
func (b *book) decent(req quota.Request, d quota.Decision) {
	b.Helper()
	if d.Tier == "" {
		b.Errorf("%+v does not say which tier decided", d)
	}
	if d.Remaining < -1 {
		b.Errorf("%+v: remaining is neither units nor -1", d)
	}
	if d.RetryAfter < 0 {
		b.Errorf("%+v: retry after a negative time", d)
	}
	held := d.Reservation.Request
	if !d.Admitted && held.Policy != nil {
		b.Errorf("%+v is a rejection with a reservation", d)
	}
	_, refunds := b.instances[0].(strategies.Refunder)
	_, commits := b.instances[0].(strategies.Committer)
	if d.Admitted && (refunds || commits) && held != req {
		b.Errorf("%+v: the reservation is of %+v and not of %+v", d, held, req)
	}
}

// judge is the oracle's verdict on all that was recorded.
func (b *book) judge(w quota.Window) oracle.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	return oracle.Judge(oracle.Config{
		Window: w, Limit: b.limit, Epoch: clock.Time(b.epoch), Changes: b.changes,
		Initial: func(s uint32) int64 { return b.initial[s] },
	}, slices.Clone(b.events))
}

// hold fails the test if a declared clause was certainly broken, among those
// that tolerate the faults that the test has caused.
func (b *book) hold(faults ...quota.Fault) {
	b.Helper()
	own := b.judge(b.policy.Window)
	if own.Malformed > 0 {
		b.Errorf("%d events of the test itself are malformed", own.Malformed)
	}
	var rolling *oracle.Verdict
	if b.policy.Window.Kind == quota.Fixed {
		v := b.judge(verdict.RollingWindow(b.policy.Window, clock.Time(b.epoch)))
		rolling = &v
	}
	params := b.params(own)
	by := verdict.Verdicts{Own: &own, Stores: &own, Rolling: rolling}
	for _, c := range verdict.Clauses(b.meta.Guarantee, b.policy.Window.Kind, faults, params, by) {
		if c.Verdict == results.Broken {
			b.Errorf("%s window, limit %d: the worst subject has a %s of %s; the guarantee %s allows %d",
				b.policy.Window.Kind, b.policy.Limit, c.Property, format.Units(c.Certain, "units"), c.Formula, c.Bound)
		}
	}
}

func (b *book) params(v oracle.Verdict) quota.Params {
	return quota.Params{
		Limit: b.policy.Limit, MaxCost: v.MaxCost, InFlight: v.MaxInFlight,
		Instances: int64(len(b.instances)), Offered: v.MaxOffered,
		Policy: b.policy, Options: b.env.Options,
	}
}

// most and least are the units that one caller after the other may be admitted,
// of so many units offered one by one; -1 is no bound.
func (b *book) most(offered int64) int64 {
	if bound, ok := b.bound(quota.PropertyLeak, offered, 1); ok {
		return b.policy.Limit + bound
	}
	return -1
}

func (b *book) least(offered int64) int64 {
	bound, ok := b.bound(quota.PropertyFalseReject, offered, 1)
	if !ok && b.orphan() {
		return 0
	}
	return max(0, min(offered, b.policy.Limit)-bound)
}

// orphan is a record's algorithm that no operator can set up. If it does not
// declare that it admits what fits, that is not expected: the record may have
// left out what its quota comes from.
func (b *book) orphan() bool {
	_, set := b.instances[0].(strategies.Provisioner)
	return !set && b.meta.Form == strategies.Documented
}

// bound is the tightest that the strategy declares for a single caller of a
// single instance; ok is false if it declares none.
func (b *book) bound(property quota.Property, offered, cost int64) (bound int64, ok bool) {
	for _, c := range b.meta.Guarantee {
		if c.Property != property || !c.Applies(b.policy.Window.Kind) {
			continue
		}
		n := c.Bound(quota.Params{Limit: b.policy.Limit, MaxCost: cost, InFlight: 1, Instances: 1, Offered: offered,
			Policy: b.policy, Options: b.env.Options})
		if !ok || n < bound {
			bound = n
			ok = true
		}
	}
	return bound, ok
}

// exactly reports whether a single caller gets the right answer every time,
// as the strategy declares.
func (b *book) exactly(offered, cost int64) bool {
	leak, bounded := b.bound(quota.PropertyLeak, offered, cost)
	reject, ok := b.bound(quota.PropertyFalseReject, offered, cost)
	return bounded && leak == 0 && reject == 0 && (ok || !b.orphan())
}

// within fails the test if so many admitted units, of so many offered one by
// one, are not what the strategy declares.
func (b *book) within(what string, admitted, offered int64) {
	b.Helper()
	if least := b.least(offered); admitted < least {
		b.Errorf("%s: %s window, limit %d: %d of %d units were admitted; at least %d have to be, unless a false-reject clause says otherwise",
			what, b.policy.Window.Kind, b.policy.Limit, admitted, offered, least)
	}
	if most := b.most(offered); most >= 0 && admitted > most {
		b.Errorf("%s: %s window, limit %d: %d of %d units were admitted; the leak clause allows %d",
			what, b.policy.Window.Kind, b.policy.Limit, admitted, offered, most)
	}
}

// wait sleeps on the wall clock.
func wait(d time.Duration) {
	alive.Add(1)
	_ = clock.Wall{}.Sleep(context.Background(), d)
}
