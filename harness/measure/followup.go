package measure

import (
	"container/heap"
	"sync/atomic"

	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// followUp is what a caller still has to do about an admitted request.
type followUp struct {
	due         int64
	seq         int64 // in order of making, if two are due at once
	reservation quota.Reservation
	subject     uint32
	cell        *windowCell
	fate        workloads.Fate // what happens now
	units       int64          // held by the caller
	actual      int64          // units that a commit is for
	committed   bool           // by its caller: no life ends it
	doubtful    bool           // its commit failed, or was answered when its life may have been over
	hold        int64          // from commit to deletion; 0 is forever
	// takeCall and takeReply are those of the take, since the epoch.
	takeCall, takeReply int64
	call                int64 // of the commit or refund
}

// agenda is a worker's follow-ups, the next one first.
type agenda struct {
	list []followUp
	made int64
}

func (a *agenda) Len() int { return len(a.list) }
func (a *agenda) Less(i, j int) bool {
	followUp := &a.list[i]
	y := &a.list[j]
	return followUp.due < y.due || followUp.due == y.due && followUp.seq < y.seq
}
func (a *agenda) Swap(i, j int)  { a.list[i], a.list[j] = a.list[j], a.list[i] }
func (a *agenda) Push(value any) { a.list = append(a.list, value.(followUp)) }
func (a *agenda) Pop() any {
	n := len(a.list) - 1
	followUp := a.list[n]
	a.list = a.list[:n]
	return followUp
}

func (a *agenda) add(f followUp) {
	a.made++
	f.seq = a.made
	heap.Push(a, f)
}

// next is the moment of the first follow-up; ok is false if there is none.
func (a *agenda) next() (due int64, ok bool) {
	if len(a.list) == 0 {
		return 0, false
	}
	return a.list[0].due, true
}

// settlement counts what became of admitted requests.
type settlement struct{ commits, refunds, abandoned, failed, chargedForNothing atomic.Int64 }

// plan notes what the caller will do about a request that was granted so many units. f says how
// it was answered. Who was granted fewer than it asked for uses no more than those.
func (k *worker) plan(op *workloads.Op, granted int64, f followUp) {
	f.due = k.last + int64(op.Settle)
	f.subject = op.Subject
	f.fate = op.Fate
	f.hold = int64(op.Hold)
	f.units = granted
	f.actual = op.Actual
	if granted < op.Units {
		f.actual = min(op.Actual, granted)
	}
	if op.Fate == workloads.FateAbandon {
		k.drive.settled.abandoned.Add(1)
		k.abandon(f)
		return
	}
	k.agenda.add(f)
}

// leave gives up what is not settled when the pass ends.
func (k *worker) leave() {
	for _, followUp := range k.agenda.list {
		if !followUp.committed {
			k.abandon(followUp)
		}
	}
}

// abandon notes when an abandoned request can be completed no longer, which is
// known beforehand: its life begins at some moment of the take. Neither the
// strategy nor the online counters are told; to those it makes a rejection look
// less certainly wrong than it is. If it is doubtful, it is open from then on.
func (k *worker) abandon(f followUp) {
	if k.drive.history == nil {
		return
	}
	life := int64(k.drive.life)
	event := oracle.Event{
		Call: f.takeCall + life, Reply: f.takeReply + life, Units: f.units, Subject: f.subject, Kind: oracle.Expire,
		Instance: k.instance,
		TakeCall: f.takeCall, TakeReply: f.takeReply,
	}
	if f.doubtful {
		event.Outcome = oracle.Failed
	}
	k.drive.history.Append(k.id, event)
}

// ended reports whether the life of what is not committed may be over at a moment.
func (k *worker) ended(f *followUp, now int64) bool {
	return !f.committed && now-k.drive.epoch >= f.takeCall+int64(k.drive.life)
}

// settleDue does what is due at the moment of the worker's last clock reading.
func (k *worker) settleDue() {
	for {
		if due, ok := k.agenda.next(); !ok || due > k.last || k.drive.stop.Load() {
			return
		}
		k.settle(heap.Pop(&k.agenda).(followUp))
	}
}

// settle commits or gives back.
func (k *worker) settle(f followUp) {
	committing := f.fate == workloads.FateCommit
	refunder, canRefund := k.strategy.(strategies.Refunder)
	committer, canCommit := k.strategy.(strategies.Committer)
	if over := f.actual - f.units; k.drive.online && committing && canCommit && over > 0 {
		f.cell.Overrun(over)
	}
	f.call = k.drive.timebase.nano()
	switch {
	case k.ended(&f, f.call):
		if !f.doubtful {
			k.drive.settled.abandoned.Add(1) // its life is over before it was settled
		}
		k.abandon(f)
		return
	case !committing && !canRefund:
		k.drive.settled.chargedForNothing.Add(f.units)
		return
	}
	k.follow = f
	k.settling = &k.follow
	if everyCall {
		k.Beat()
	}
	var err error
	switch {
	case !committing:
		err = refunder.Refund(k.Context(), f.reservation)
	case canCommit:
		err = committer.Commit(k.Context(), f.reservation, f.actual)
	}
	reply := k.drive.timebase.nano()
	if reply-f.call > monitor.LongCall {
		err = k.Returned(err)
	}
	k.settling = nil
	k.settled(f, reply, err)
}

// settled records a settlement. Truth is what callers do: a give-back counts from its
// call even if the strategy answers with an error.
func (k *worker) settled(f followUp, reply int64, err error) {
	committing := f.fate == workloads.FateCommit
	_, canCommit := k.strategy.(strategies.Committer)
	event := oracle.Event{Units: f.units, Subject: f.subject, Kind: oracle.Refund, Instance: k.instance,
		TakeCall: f.takeCall, TakeReply: f.takeReply}
	if committing && canCommit {
		event.Kind = oracle.Commit
		event.Units = f.units - f.actual
	}
	k.last = reply
	if committing {
		k.drive.settled.commits.Add(1)
		f.doubtful = canCommit && (err != nil || k.ended(&f, reply))
		f.committed = !f.doubtful
		if canCommit {
			if err == nil || f.actual < f.units {
				f.units = f.actual
			}
			f.reservation.Request.Units = f.actual
			f.reservation.Committed = true
		}
		switch {
		case f.hold > 0:
			f.fate = workloads.FateFail
			f.due = reply + f.hold
			k.agenda.add(f)
		case f.doubtful:
			k.abandon(f)
		}
		if !canCommit {
			return // no strategy was told, so nothing happened
		}
	} else {
		k.drive.settled.refunds.Add(1)
	}
	if err != nil {
		event.Outcome = oracle.Failed
		k.drive.settled.failed.Add(1)
		k.drive.errOnce.Do(func() { k.drive.counts.FirstError = err })
	}
	k.drive.rec.recordSettle(k.stripe, reply-f.call)
	if k.drive.online && event.Units > 0 && err == nil {
		f.cell.GiveBack(event.Units)
	}
	if k.drive.history != nil {
		event.Call = f.call - k.drive.epoch
		event.Reply = reply - k.drive.epoch
		k.drive.history.Append(k.id, event)
	}
}
