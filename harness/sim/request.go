package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/trouble/kill"
	"github.com/quotabench/quotabench/internal/virtual/sched"
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
	d.at(call)
	subject, began := d.truth.begin(op.Subject, op.Units, call)
	index := subject.window
	d.inFlight++
	d.issued++
	req := quota.Request{ID: uint64(w.index) + 1, Subject: subject.name, Policy: d.policy, Units: op.Units}
	if op.Fate != workloads.FateNone {
		req.Settles = true
		req.Life = d.cfg.Life
	}
	d.cfg.ChargeSecond(&req, w.index)
	answered := false
	answer := func(dec quota.Decision, err error) {
		d.answer(w, op, asking{subject, call, index, instance, began}, dec, err)
	}
	defer func() { // if the strategy panics, this one and all others in flight end
		if !answered && !d.judged {
			answer(quota.Decision{}, errUnanswered)
		}
	}()
	if after := d.cfg.Kills(w.index); after > 0 {
		ctx, _ = kill.After(ctx, after, func(ctx context.Context) { sched.From(ctx).Die(kill.Err) })
	}
	var dec quota.Decision
	err := d.site.process[instance].Do(ctx, func() (err error) {
		dec, err = d.site.Instances[instance].Take(ctx, req)
		return err
	})
	answered = true
	answer(dec, err)
	d.calm()
}

// calm calls rest, once, when no further request will be issued and nothing is in flight.
func (d *drive) calm() {
	if rest := d.rest; rest != nil && d.inFlight == 0 && d.settling == 0 && (d.over || d.next >= d.requests) &&
		d.issued == d.next {
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
	d.record(out, tier, dec.Degraded, reply-w.intended, reply-t.call)
	if dec.BySecond && !dec.Admitted {
		out = oracle.Elsewhere
	}
	d.at(reply)
	d.truth.end(t, op.Units, granted, reply, out)
	d.cfg.Record(d.history, 0, oracle.Event{
		Call: t.call - d.epoch, Reply: reply - d.epoch, Units: op.Units, Subject: op.Subject,
		Kind: oracle.Take, Outcome: out, Tier: tier, Instance: uint8(t.instance),
	}, granted, w.index)
	if out == oracle.Admitted && granted < op.Units {
		op.Units = granted
		op.Actual = min(op.Actual, granted)
	}
	if d.live != nil && (d.counts.Admitted+d.counts.Rejected+d.counts.Errors.Total())%liveEvery == 0 {
		d.cfg.Live.show(d, d.state(reply), false)
	}
	if err == nil || strategies.IsPrescribed(err) {
		d.witness.Taken(nil)
	} else {
		d.witness.Taken(err)
	}
	if out == oracle.Rejected || out == oracle.Elsewhere {
		t.subject.rejected++
		d.rejectedLast = t.subject.name
	}
	if out != oracle.Admitted {
		return
	}
	if op.Fate == workloads.FateNone {
		return
	}
	d.session(op, dec.Reservation, &holding{t.call - d.epoch, reply - d.epoch, t.window, t.instance, op.Subject, op.Units})
}

// session settles a request later. Its operation is a copy: a closure of answer's own
// would put that of each request on the heap.
func (d *drive) session(op workloads.Op, reservation quota.Reservation, h *holding) {
	d.settling++
	d.scheduler.Go("session", func(ctx context.Context) {
		d.settle(ctx, op, reservation, h)
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

func (d *drive) record(out oracle.Outcome, tier uint8, degraded bool, response, service int64) {
	if out == oracle.RejectedDegraded {
		out = oracle.Rejected
	}
	histogram := &d.parts[out][tier]
	if *histogram == nil {
		*histogram = results.NewHistogram()
	}
	(*histogram).Record(response)
	if d.live != nil {
		key := [2]uint8{uint8(out), tier}
		if d.liveParts[key] == nil {
			d.liveParts[key] = new(stat.LiveLatency)
		}
		d.liveParts[key].Add(service, degraded)
	}
	d.service.Record(service)
}

// holding is what a caller holds by a take: when that was called and answered, since the epoch, the window in force
// when it was called, and the instance that was asked.
type holding struct {
	call, reply, window int64
	instance            int
	subject             uint32
	units               int64
}

// settle is the rest of a session: commit or fail, and deletion. Truth is what
// callers do: a give-back counts from its call even if the strategy answers with
// an error.
func (d *drive) settle(ctx context.Context, op workloads.Op, reservation quota.Reservation, h *holding) {
	within := func(call func() error) func() error {
		return func() error { return d.site.process[h.instance].Do(ctx, call) }
	}
	late := int64(op.Settle) >= int64(d.cfg.Life)-(h.reply-h.call) // its life is over by then
	if op.Fate == workloads.FateAbandon || late {
		d.settlement.Abandoned++
		if d.clock.Sleep(ctx, d.cfg.Life) == nil {
			d.expire(h, d.now(), oracle.Admitted)
		}
		return
	}
	if d.clock.Sleep(ctx, op.Settle) != nil {
		return
	}
	if op.Fate == workloads.FateCommit {
		d.settlement.Commits++
		if committer, ok := d.site.Instances[h.instance].(strategies.Committer); ok {
			ended, err := d.commit(h, op.Actual, within(func() error { return committer.Commit(ctx, reservation, op.Actual) }))
			if ended {
				return
			}
			if left := time.Duration(d.ends(h) - d.now()); err != nil && (op.Hold == 0 || op.Hold >= left) {
				if d.clock.Sleep(ctx, left) == nil { // nothing tells whether it is committed
					d.expire(h, d.now(), oracle.Failed)
				}
				return
			}
			reservation.Request.Units = op.Actual
			reservation.Committed = true
		}
		if op.Hold == 0 || d.clock.Sleep(ctx, op.Hold) != nil {
			return
		}
	}
	refunder, canRefund := d.site.Instances[h.instance].(strategies.Refunder)
	switch {
	case canRefund:
		d.settlement.Refunds++
		_ = d.event(h, oracle.Refund, h.units, within(func() error { return refunder.Refund(ctx, reservation) }))
	case op.Fate == workloads.FateFail:
		d.settlement.ChargedForNothing += h.units
	}
}

// at moves the truth on to a moment. If the life of a reservation ends while it is committed, it is open from then on
// whether its units are held.
func (d *drive) at(now int64) {
	for len(d.committing) > 0 && d.ends(d.committing[0]) <= now {
		holding := d.committing[0]
		d.committing = d.committing[1:]
		d.expire(holding, d.ends(holding), oracle.Failed)
	}
	d.truth.at(now, d.windowAt)
}

// ends is the first moment at which a life may be over: it began at some moment of the take.
func (d *drive) ends(h *holding) int64 { return h.call + int64(d.cfg.Life) + d.epoch }

// expire notes that a reservation can be completed no longer. The strategy is told nothing. With the outcome
// [oracle.Failed] it is open whether it was committed.
func (d *drive) expire(h *holding, now int64, outcome oracle.Outcome) {
	d.at(now)
	d.truth.giveBack(h, h.units, now)
	if outcome == oracle.Failed {
		d.truth.subjects[h.subject].loose += h.units
	}
	d.history.Append(0, h.event(oracle.Expire, outcome, h.units, d.ends(h)-d.epoch, now-d.epoch))
}

func (h *holding) event(kind oracle.Kind, outcome oracle.Outcome, units, call, reply int64) oracle.Event {
	return oracle.Event{Call: call, Reply: reply, Units: units, Subject: h.subject, Kind: kind, Outcome: outcome,
		Instance: uint8(h.instance), TakeCall: h.call, TakeReply: h.reply}
}

// commit carries a commit out, and tells whether the life of its reservation ended before the answer.
func (d *drive) commit(h *holding, actual int64, do func() error) (ended bool, err error) {
	reserved := h.units
	h.units = actual
	d.committing = append(d.committing, h)
	slices.SortFunc(d.committing, func(a, b *holding) int { return cmp.Compare(a.call, b.call) })
	err = d.event(h, oracle.Commit, reserved-actual, do)
	if err != nil {
		h.units = min(reserved, actual)
	}
	i := slices.Index(d.committing, h)
	if i >= 0 {
		d.committing = slices.Delete(d.committing, i, i+1)
	}
	return i < 0, err
}

// event carries a settlement out and records it.
func (d *drive) event(h *holding, kind oracle.Kind, units int64, do func() error) error {
	call := d.now()
	d.at(call)
	d.truth.settling(h, units, call)
	err := do()
	reply := d.now()
	d.at(reply)
	d.truth.settled(h, units, reply, err != nil)
	d.settled.Record(reply - call)
	outcome := oracle.Admitted
	if err != nil {
		outcome = oracle.Failed
		d.settlement.Errors++
		d.counts.FirstError = cmp.Or(d.counts.FirstError, err)
	}
	d.history.Append(0, h.event(kind, outcome, units, call-d.epoch, reply-d.epoch))
	d.lastEnd = max(d.lastEnd, reply)
	return err
}
