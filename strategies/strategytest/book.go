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

func (f *fixture) book(policy *quota.Policy) *book {
	return &book{fixture: f, policy: policy, limit: policy.Limit, epoch: f.nano(), initial: map[uint32]int64{},
		takes: map[uint64]oracle.Event{}}
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
	if provisioner, ok := b.instances[0].(strategies.Provisioner); ok {
		grant := strategies.Grant{Subject: s.name, Limit: b.policy.Limit, Used: used}
		if err := provisioner.Provision(b.ctx(), b.policy, []strategies.Grant{grant}); err != nil {
			b.Fatalf("setting up %q: %v", s.name, err)
		}
		b.initial[n] = used
	}
	return s
}

// try asks an instance for units and records the answer.
func (b *book) try(ctx context.Context, instance int, s subject, units int64) (quota.Decision, error) {
	req := quota.Request{ID: b.ids.Add(1), Subject: s.name, Policy: b.policy, Units: units}
	event := oracle.Event{Call: b.nano(), Units: units, Subject: s.number, Instance: uint8(instance)}
	signsOfLife.Add(1)
	decision, err := b.instances[instance].Take(ctx, req)
	signsOfLife.Add(1)
	event.Reply = b.nano()
	granted := units
	if err == nil && decision.Admitted {
		granted, err = decision.Units(units)
		if err != nil {
			b.Errorf("%+v: %v", decision, err)
		}
	}
	switch {
	case err != nil:
		event.Outcome = oracle.Failed
	case decision.Admitted:
		event.Outcome = oracle.Admitted
		if granted < units {
			short := event
			short.Outcome = oracle.Short
			short.Units = units - granted
			b.record(req.ID, short)
			event.Units = granted
		}
	case decision.Degraded:
		event.Outcome = oracle.RejectedDegraded
	default:
		event.Outcome = oracle.Rejected
	}
	b.record(req.ID, event)
	b.witness.Taken(err)
	if err == nil {
		req.Units = granted
		b.decent(req, decision)
	}
	return decision, err
}

// take is try, except that an error ends the test.
func (b *book) take(s subject, units int64) quota.Decision {
	b.Helper()
	decision, err := b.try(b.ctx(), 0, s, units)
	if err != nil {
		b.Fatalf("asking for %d units: %v", units, err)
	}
	if decision.Degraded {
		b.Fatalf("%+v is degraded although every store is there", decision)
	}
	return decision
}

// exhaust asks n times for one unit and counts what was admitted.
func (b *book) exhaust(s subject, n int64) (admitted int64, held []quota.Reservation) {
	b.Helper()
	for range n {
		if decision := b.take(s, 1); decision.Admitted {
			admitted++
			held = append(held, decision.Reservation)
		}
	}
	return admitted, held
}

// refund gives units back; they are those that the oracle is told of.
func (b *book) refund(s subject, reservation quota.Reservation, units int64) error {
	event := oracle.Event{Kind: oracle.Refund, Call: b.nano(), Units: units, Subject: s.number}
	err := b.instances[0].(strategies.Refunder).Refund(b.ctx(), reservation)
	event.Reply = b.nano()
	b.record(reservation.Request.ID, event)
	return err
}

func (b *book) commit(s subject, reservation quota.Reservation, actual int64) error {
	event := oracle.Event{Kind: oracle.Commit, Call: b.nano(), Units: reservation.Request.Units - actual,
		Subject: s.number}
	err := b.instances[0].(strategies.Committer).Commit(b.ctx(), reservation, actual)
	event.Reply = b.nano()
	b.record(reservation.Request.ID, event)
	return err
}

// record writes down a take, or what settled the take of the request with that ID.
func (b *book) record(request uint64, event oracle.Event) {
	event.Call -= b.epoch
	event.Reply -= b.epoch
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case event.Kind != oracle.Take:
		take := b.takes[request]
		event.TakeCall = take.Call
		event.TakeReply = take.Reply
	case event.Outcome == oracle.Admitted:
		b.takes[request] = event
	}
	b.events = append(b.events, event)
}

// decent looks at what every decision must be, whatever strategy made it.
func (b *book) decent(req quota.Request, decision quota.Decision) {
	b.Helper()
	if decision.Tier == "" {
		b.Errorf("%+v does not say which tier decided", decision)
	}
	if decision.Remaining < -1 {
		b.Errorf("%+v: remaining is neither units nor -1", decision)
	}
	if decision.RetryAfter < 0 {
		b.Errorf("%+v: retry after a negative time", decision)
	}
	held := decision.Reservation.Request
	if !decision.Admitted && held.Policy != nil {
		b.Errorf("%+v is a rejection with a reservation", decision)
	}
	_, refunds := b.instances[0].(strategies.Refunder)
	_, commits := b.instances[0].(strategies.Committer)
	if decision.Admitted && (refunds || commits) && held != req {
		b.Errorf("%+v: the reservation is of %+v and not of %+v", decision, held, req)
	}
}

// judge is the oracle's verdict on all that was recorded.
func (b *book) judge(window quota.Window) oracle.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	return oracle.Judge(oracle.Config{
		Window: window, Limit: b.limit, Epoch: clock.Time(b.epoch), Changes: b.changes,
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
	verdicts := verdict.Verdicts{Own: &own, Stores: &own, Rolling: rolling}
	for _, clause := range verdict.Clauses(b.meta.Guarantee, b.policy.Window.Kind, faults, params, verdicts) {
		if clause.Verdict == results.Broken {
			b.Errorf("%s window, limit %d: the worst subject has a %s of %s; the guarantee %s allows %d",
				b.policy.Window.Kind, b.policy.Limit, clause.Property, format.Units(clause.Certain, "units"), clause.Formula,
				clause.Bound)
		}
	}
}

func (b *book) params(v oracle.Verdict) quota.Params {
	return quota.Params{
		Limit: b.policy.Limit, MaxCost: v.MaxCost, Deciding: v.MaxDeciding, InFlight: v.MaxInFlight,
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
	if b.rejects && property == quota.PropertyFalseReject {
		return quota.Unbounded, true
	}
	for _, clause := range b.meta.Guarantee {
		if clause.Property != property || !clause.Applies(b.policy.Window.Kind) {
			continue
		}
		n := clause.Bound(quota.Params{Limit: b.policy.Limit, MaxCost: cost, Deciding: 1, InFlight: 1, Instances: 1,
			Offered: offered, Policy: b.policy, Options: b.env.Options})
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
func (b *book) within(what string, admitted, offered int64) bool {
	b.Helper()
	got := fmt.Sprintf("%s: %s window, limit %d: %d of %d units were admitted", what, b.policy.Window.Kind, b.policy.Limit,
		admitted, offered)
	if least := b.least(offered); admitted < least {
		b.Errorf("%s; at least %d have to be, unless a false-reject clause says otherwise", got, least)
		return false
	}
	if most := b.most(offered); most >= 0 && admitted > most {
		b.Errorf("%s; the leak clause allows %d", got, most)
		return false
	}
	return true
}

// wait sleeps on the wall clock. It counts as a sign of life, so that a test that waits is not taken for
// one whose requests are stuck; see stuckAfter.
func wait(duration time.Duration) {
	signsOfLife.Add(1)
	_ = clock.Wall{}.Sleep(context.Background(), duration) // its context never ends
}
