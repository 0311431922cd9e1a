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
	one := &a.list[i]
	other := &a.list[j]
	return one.due < other.due || one.due == other.due && one.seq < other.seq
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

// settlements count what became of admitted requests.
type settlements struct{ commits, refunds, abandoned, failed, chargedForNothing atomic.Int64 }

// planSettlement notes what the caller will do about the operation if it was admitted. Who was granted fewer units than
// it asked for uses no more than those.
func (k *worker) planSettlement(request *request) {
	operation := &k.op
	if request.outcome != oracle.Admitted || operation.Fate == workloads.FateNone {
		return
	}
	epoch := k.drive.epoch
	follow := followUp{
		reservation: request.decision.Reservation, cell: request.cell,
		takeCall: request.call - epoch, takeReply: request.reply - epoch,
		due: k.last + int64(operation.Settle), subject: operation.Subject,
		fate: operation.Fate, hold: int64(operation.Hold),
		units: request.granted, actual: operation.Actual,
	}
	if request.granted < operation.Units {
		follow.actual = min(operation.Actual, request.granted)
	}
	if operation.Fate == workloads.FateAbandon {
		k.drive.settlements.abandoned.Add(1)
		k.abandon(follow)
		return
	}
	k.agenda.add(follow)
}

// abandonUnsettled gives up what is not settled when the pass ends.
func (k *worker) abandonUnsettled() {
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
func (k *worker) abandon(follow followUp) {
	if k.drive.history == nil {
		return
	}
	life := int64(k.drive.life)
	event := oracle.Event{
		Call: follow.takeCall + life, Reply: follow.takeReply + life, TakeCall: follow.takeCall, TakeReply: follow.takeReply,
		Units: follow.units, Subject: follow.subject, Kind: oracle.Expire, Instance: k.instance,
	}
	if follow.doubtful {
		event.Outcome = oracle.Failed
	}
	k.drive.history.Append(k.id, event)
}

// expired reports whether the life of what is not committed may be over at a moment.
func (k *worker) expired(f *followUp, now int64) bool {
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
func (k *worker) settle(follow followUp) {
	drive := k.drive
	committing := follow.fate == workloads.FateCommit
	refunder, canRefund := k.strategy.(strategies.Refunder)
	committer, canCommit := k.strategy.(strategies.Committer)
	if over := follow.actual - follow.units; drive.online && committing && canCommit && over > 0 {
		follow.cell.Overrun(over)
	}
	follow.call = drive.timebase.nano()
	switch {
	case k.expired(&follow, follow.call):
		if !follow.doubtful {
			drive.settlements.abandoned.Add(1) // its life is over before it was settled
		}
		k.abandon(follow)
		return
	case !committing && !canRefund:
		drive.settlements.chargedForNothing.Add(follow.units)
		return
	}
	k.follow = follow
	k.settling = &k.follow
	if everyCall {
		k.Beat()
	}
	var err error
	switch {
	case !committing:
		err = refunder.Refund(k.Context(), follow.reservation)
	case canCommit:
		err = committer.Commit(k.Context(), follow.reservation, follow.actual)
	}
	reply := drive.timebase.nano()
	if reply-follow.call > monitor.LongCall {
		err = k.Returned(err)
	}
	k.settling = nil
	k.settlementOver(follow, reply, err)
}

// settlementOver records a settlement. Truth is what callers do: a give-back counts from its
// call even if the strategy answers with an error.
func (k *worker) settlementOver(follow followUp, reply int64, err error) {
	event := oracle.Event{Units: follow.units, Subject: follow.subject, Kind: oracle.Refund, Instance: k.instance,
		TakeCall: follow.takeCall, TakeReply: follow.takeReply}
	k.last = reply
	if follow.fate == workloads.FateCommit {
		_, canCommit := k.strategy.(strategies.Committer)
		k.committed(follow, reply, err, canCommit)
		if !canCommit {
			return // no strategy was told, so nothing happened
		}
		event.Kind = oracle.Commit
		event.Units = follow.units - follow.actual
	} else {
		k.drive.settlements.refunds.Add(1)
	}
	k.recordSettlement(&follow, event, reply, err)
}

// committed counts a commit, and notes when its units are given back again, if they ever are. canCommit is
// whether the strategy was told.
func (k *worker) committed(follow followUp, reply int64, err error, canCommit bool) {
	k.drive.settlements.commits.Add(1)
	follow.doubtful = canCommit && (err != nil || k.expired(&follow, reply))
	follow.committed = !follow.doubtful
	if canCommit {
		if err == nil || follow.actual < follow.units {
			follow.units = follow.actual
		}
		follow.reservation.Request.Units = follow.actual
		follow.reservation.Committed = true
	}
	switch {
	case follow.hold > 0:
		follow.fate = workloads.FateFail
		follow.due = reply + follow.hold
		k.agenda.add(follow)
	case follow.doubtful:
		k.abandon(follow)
	}
}

// recordSettlement records an answer to a settlement: its latency, and what it gave back in the online counters and
// in the history.
func (k *worker) recordSettlement(follow *followUp, event oracle.Event, reply int64, err error) {
	drive := k.drive
	if err != nil {
		event.Outcome = oracle.Failed
		drive.settlements.failed.Add(1)
		drive.errOnce.Do(func() { drive.counts.FirstError = err })
	}
	drive.rec.recordSettle(k.stripe, reply-follow.call)
	if drive.online && event.Units > 0 && err == nil {
		follow.cell.GiveBack(event.Units)
	}
	if drive.history != nil {
		event.Call = follow.call - drive.epoch
		event.Reply = reply - drive.epoch
		drive.history.Append(k.id, event)
	}
}
