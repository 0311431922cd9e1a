package sim

import (
	"cmp"
	"context"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

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
