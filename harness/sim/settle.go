package sim

import (
	"context"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// settle is the rest of a session: commit or fail, and deletion. Truth is what
// callers do: a give-back counts from its call even if the strategy answers with
// an error.
func (d *drive) settle(ctx context.Context, op workloads.Op, r quota.Reservation, instance int) {
	in := d.st.instances[instance]
	refunder, canRefund := in.(strategies.Refunder)
	held := op.Units
	if d.clock.Sleep(ctx, op.Settle) != nil {
		return
	}
	if op.Fate == workloads.FateCommit {
		d.commits++
		if committer, ok := in.(strategies.Committer); ok {
			d.event(op.Subject, oracle.Commit, held-op.Actual, instance, func() error { return committer.Commit(ctx, r, op.Actual) })
			held = op.Actual
			r.Request.Units = op.Actual
			r.Committed = true
		}
		if op.Hold == 0 || d.clock.Sleep(ctx, op.Hold) != nil {
			return
		}
	}
	if canRefund {
		d.refunds++
		d.event(op.Subject, oracle.Refund, held, instance, func() error { return refunder.Refund(ctx, r) })
	}
}

// event carries a settlement out and records it.
func (d *drive) event(subject uint32, kind oracle.Kind, units int64, instance int, do func() error) {
	call := d.now()
	d.truth.at(call, d.windowAt)
	d.truth.giveBack(subject, units, call)
	err := do()
	reply := d.now()
	d.settled.Record(reply - call)
	e := oracle.Event{Call: call - d.epoch, Reply: reply - d.epoch, Units: units, Subject: subject, Kind: kind, Instance: uint8(instance)}
	if err != nil {
		e.Outcome = oracle.Failed
		d.settleErrors++
		if d.firstError == nil {
			d.firstError = err
		}
	}
	d.history.Append(0, e)
	d.lastEnd = max(d.lastEnd, reply)
}
