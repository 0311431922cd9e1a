package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/killed"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// do issues one request.
func (d *drive) do(ctx context.Context, w due) {
	d.stream.At(w.index, &d.op)
	op := d.op
	instance := d.cfg.Topology.assign(d.placement, uint64(w.index), op.Subject)
	call := d.now()
	d.truth.at(call, d.windowAt)
	s, began := d.truth.begin(op.Subject, op.Units, call)
	index := s.window
	d.inFlight++
	d.issued++
	req := quota.Request{ID: uint64(w.index) + 1, Subject: s.name, Policy: d.policy, Units: op.Units}
	if op.Fate != workloads.FateNone {
		req.Settles, req.Life = true, d.cfg.Life
	}
	d.cfg.ChargeSecond(&req, w.index)
	answered := false
	answer := func(dec quota.Decision, err error) {
		d.answer(w, op, asking{s, call, index, instance, began}, dec, err)
	}
	defer func() { // if the strategy panics, this one and all others in flight end
		if !answered && !d.judged {
			answer(quota.Decision{}, errUnanswered)
		}
	}()
	if d.cfg.Kills(w.index) {
		ctx, _ = killed.After(ctx, d.cfg.KillAfter, func(ctx context.Context) { sched.From(ctx).Die(killed.Err) })
	}
	var dec quota.Decision
	err := d.st.process[instance].Do(ctx, func() (err error) {
		dec, err = d.st.Instances[instance].Take(ctx, req)
		return err
	})
	answered = true
	answer(dec, err)
	d.calm()
}

// calm calls rest, once, when no further request will be issued and nothing is in flight.
func (d *drive) calm() {
	if rest := d.rest; rest != nil && d.inFlight == 0 && d.settling == 0 && (d.over || d.next >= d.requests) && d.issued == d.next {
		d.rest = nil
		rest()
	}
}

// errUnanswered is the error of a request that has no answer.
var errUnanswered = errors.New("the strategy panicked before it had answered")

// asking is whose request it is, when it was made, in which window, of which instance, and
// what was known then.
type asking struct {
	subject      *subject
	call, window int64
	instance     int
	began        asked
}

// answer records a request's answer.
func (d *drive) answer(w due, op workloads.Op, t asking, dec quota.Decision, err error) {
	reply := d.now()
	granted := int64(0)
	if err == nil {
		granted, err = dec.Units(op.Units)
	}
	d.inFlight--
	d.lastEnd = max(d.lastEnd, reply)

	out, tier := d.outcome(&dec, err)
	d.record(out, tier, reply-w.intended, reply-t.call)
	if dec.BySecond && !dec.Admitted {
		out = oracle.Elsewhere
	}
	d.truth.at(reply, d.windowAt)
	d.truth.end(t, op.Units, granted, reply, out)
	d.cfg.Record(d.history, 0, oracle.Event{
		Call: t.call - d.epoch, Reply: reply - d.epoch, Units: op.Units, Subject: op.Subject,
		Kind: oracle.Take, Outcome: out, Tier: tier, Instance: uint8(t.instance),
	}, granted, w.index)
	if out == oracle.Admitted && granted < op.Units {
		op.Units, op.Actual = granted, min(op.Actual, granted)
	}
	if d.live != nil && (d.counts.Admitted+d.counts.Rejected+d.counts.Errors.Total())%liveEvery == 0 {
		d.cfg.Live.show(d, d.state(reply), false)
	}
	if err == nil || strategies.IsPrescribed(err) {
		d.witness.Taken(nil)
	} else {
		d.witness.Taken(err)
	}
	if out == oracle.Rejected {
		d.rejectedLast = t.subject.name
	}
	if out != oracle.Admitted {
		return
	}
	if op.Fate == workloads.FateNone {
		return
	}
	d.session(op, dec.Reservation, took{t.call - d.epoch, reply - d.epoch, t.window, t.instance})
}

// session settles a request later. Its operation is a copy: a closure of answer's own
// would put that of each request on the heap.
func (d *drive) session(op workloads.Op, r quota.Reservation, t took) {
	d.settling++
	d.s.Go("session", func(ctx context.Context) {
		d.settle(ctx, op, r, t)
		d.settling--
		d.calm()
	})
}

// outcome counts an answer.
func (d *drive) outcome(dec *quota.Decision, err error) (out oracle.Outcome, tier uint8) {
	out = d.counts.Told(dec, err)
	if err != nil {
		d.counts.FirstError = cmp.Or(d.counts.FirstError, err)
		return out, 0
	}
	tier = d.tier(dec.Tier)
	d.hits[tier]++
	return out, tier
}

// tier numbers the places where decisions are made; 0 has no name.
func (d *drive) tier(name quota.Tier) uint8 {
	if i := slices.Index(d.tiers, name); i >= 0 {
		return uint8(i)
	}
	if len(d.tiers) == maxTiers {
		d.folded++
		return 0
	}
	d.tiers = append(d.tiers, name)
	d.hits = append(d.hits, 0)
	return uint8(len(d.tiers) - 1)
}

// maxTiers is the most deciding tiers that a run tells apart.
const maxTiers = 16

func (d *drive) record(out oracle.Outcome, tier uint8, response, service int64) {
	if out == oracle.RejectedDegraded {
		out = oracle.Rejected
	}
	h := &d.parts[out][tier]
	if *h == nil {
		*h = results.NewHistogram()
	}
	(*h).Record(response)
	if d.live != nil {
		key := [2]uint8{uint8(out), tier}
		if d.liveParts[key] == nil {
			d.liveParts[key] = new(harness.LiveLatency)
		}
		d.liveParts[key].Add(service)
	}
	d.service.Record(service)
}

// took is when a take was called and answered, since the epoch, the window in force when it
// was called, and the instance that was asked.
type took struct {
	call, reply, window int64
	instance            int
}

// settle is the rest of a session: commit or fail, and deletion. Truth is what
// callers do: a give-back counts from its call even if the strategy answers with
// an error.
func (d *drive) settle(ctx context.Context, op workloads.Op, r quota.Reservation, t took) {
	within := func(call func() error) func() error {
		return func() error { return d.st.process[t.instance].Do(ctx, call) }
	}
	held := op.Units
	late := int64(op.Settle) >= int64(d.cfg.Life)-(t.reply-t.call) // its life is over by then
	if op.Fate == workloads.FateAbandon || late {
		d.settlement.Abandoned++
		if d.clock.Sleep(ctx, d.cfg.Life) == nil {
			d.expire(op.Subject, held, t)
		}
		return
	}
	if d.clock.Sleep(ctx, op.Settle) != nil {
		return
	}
	if op.Fate == workloads.FateCommit {
		d.settlement.Commits++
		if committer, ok := d.st.Instances[t.instance].(strategies.Committer); ok {
			d.event(op.Subject, oracle.Commit, held-op.Actual, t, within(func() error { return committer.Commit(ctx, r, op.Actual) }))
			held = op.Actual
			r.Request.Units = op.Actual
			r.Committed = true
		}
		if op.Hold == 0 || d.clock.Sleep(ctx, op.Hold) != nil {
			return
		}
	}
	refunder, canRefund := d.st.Instances[t.instance].(strategies.Refunder)
	switch {
	case canRefund:
		d.settlement.Refunds++
		d.event(op.Subject, oracle.Refund, held, t, within(func() error { return refunder.Refund(ctx, r) }))
	case op.Fate == workloads.FateFail:
		d.settlement.ChargedForNothing += held
	}
}

// expire notes that an abandoned request can be completed no longer. The strategy
// is told nothing.
func (d *drive) expire(subject uint32, units int64, t took) {
	now := d.now()
	d.truth.at(now, d.windowAt)
	d.truth.giveBack(subject, units, t.window, t.reply+d.epoch, now)
	reply := now - d.epoch
	d.history.Append(0, oracle.Event{
		// The life began at some moment of the take.
		Call: reply - (t.reply - t.call), Reply: reply, Units: units, Subject: subject, Kind: oracle.Expire, Instance: uint8(t.instance),
		TakeCall: t.call, TakeReply: t.reply,
	})
}

// event carries a settlement out and records it.
func (d *drive) event(subject uint32, kind oracle.Kind, units int64, t took, do func() error) {
	call := d.now()
	d.truth.at(call, d.windowAt)
	d.truth.giveBack(subject, units, t.window, t.reply+d.epoch, call)
	err := do()
	reply := d.now()
	d.settled.Record(reply - call)
	e := oracle.Event{Call: call - d.epoch, Reply: reply - d.epoch, Units: units, Subject: subject, Kind: kind,
		Instance: uint8(t.instance), TakeCall: t.call, TakeReply: t.reply}
	if err != nil {
		e.Outcome = oracle.Failed
		d.settlement.Errors++
		d.counts.FirstError = cmp.Or(d.counts.FirstError, err)
	}
	d.history.Append(0, e)
	d.lastEnd = max(d.lastEnd, reply)
}
