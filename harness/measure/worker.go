package measure

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/internal/trouble/kill"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// worker is one caller.
type worker struct {
	monitor.Caller
	drive    *drive
	op       workloads.Op
	call     int64            // when the take under way was called; 0 if none is
	intended int64            // when that was due, in an open loop
	settling *followUp        // the commit or refund under way; nil if none is
	hung     *guard.HungError // why the worker was given up; nil if it was not
	follow   followUp
	id       int
	instance uint8
	strategy strategies.Strategy
	stripe   *stripe
	last     int64          // reading of the clock
	counts   harness.Counts // added to those of the pass in the end
	agenda   agenda
	// share is how many requests the worker takes from the stream at once.
	share int64
	// announced are units that the oracle was told of and that were not asked for
	// yet, of that window and with that mark.
	announced   int64
	announcedTo *windowCell
	mark        int64
	cell        *windowCell // where admitted units are not counted yet
	admitted    int64
	admissions  int        // behind admitted
	tier        quota.Tier // of the last decision, with its index
	tierIndex   uint8
}

func (d *drive) newWorker(ctx context.Context, id int) *worker {
	i := id % len(d.instances)
	k := &worker{drive: d, id: id, instance: uint8(i), strategy: d.instances[i], stripe: d.rec.stripe(id),
		share: 1, last: d.epoch}
	k.Init(ctx, k.calling)
	return k
}

// begin announces units to the oracle, before the clock is read. A worker that
// takes several requests at once announces them all: what is announced too early,
// or never asked for, only makes the oracle's online count more careful.
func (k *worker) begin(cell *windowCell, units int64) (mark int64) {
	if cell != k.announcedTo || k.announced < units {
		k.withdraw()
		k.announcedTo = cell
		k.announced = units * k.share
		k.mark = cell.Begin(k.announced)
	}
	k.announced -= units
	return k.mark
}

// withdraw takes back what was announced and not asked for.
func (k *worker) withdraw() {
	if k.announced > 0 {
		k.announcedTo.Withdraw(k.announced)
		k.announced = 0
	}
}

// admit counts admitted units of a window. A worker adds them up for as long as it
// stays with a window, since all workers write to the same cell, and if the pass is
// shown for a few admissions: otherwise they are asked for only when it is over.
func (k *worker) admit(cell *windowCell, units int64) {
	if cell != k.cell {
		k.flush()
		k.cell = cell
	}
	k.admitted += units
	k.admissions++
	if k.drive.shown && k.admissions >= liveBatch {
		k.flush()
	}
}

func (k *worker) flush() {
	if k.admitted > 0 {
		k.cell.Admit(k.admitted)
		k.admitted = 0
	}
	k.admissions = 0
}

// finish adds the worker's counts to the pass.
func (k *worker) finish() {
	k.leave()
	k.flush()
	k.withdraw()
	k.drive.counting.Lock()
	defer k.drive.counting.Unlock()
	k.drive.counts.Add(k.counts)
}

// do issues one operation. The clock is read twice, around the call alone; the
// window is chosen by the worker's last reading, and corrected if that one
// lay before a boundary.
func (k *worker) do(i int64, op *workloads.Op) (call, reply int64, out oracle.Outcome, tier uint8) {
	drive := k.drive
	subject := drive.subjects.at(op.Subject)
	req := quota.Request{ID: drive.firstID + uint64(i) + 1, Subject: subject.name, Units: op.Units}
	if op.Fate != workloads.FateNone {
		req.Settles = true
		req.Life = drive.life
	}
	drive.plan.ChargeSecond(&req, i)
	window, cell, mark, call := k.enter(subject, op.Units)
	limit := drive.limit.Load() // after the clock was read: what is in force now was so then, or later
	req.Policy = limit.policy
	k.call = call
	if everyCall {
		k.Beat()
	}
	dec, err := k.take(i, req)
	reply = drive.timebase.nano()
	if reply-call > monitor.LongCall {
		err = k.Returned(err)
	}
	k.call = 0
	granted := int64(0)
	if err == nil {
		granted, err = dec.Units(op.Units)
	}

	k.last = reply
	out, tier = k.told(&dec, err)
	own := out // of the first quota
	if dec.BySecond && !dec.Admitted {
		own = oracle.Elsewhere
	}
	if drive.online {
		if reply >= window.end {
			drive.crossed(subject, window, reply)
		}
		k.count(cell, own, op.Units, granted, begun{mark, limit})
	}
	if drive.history != nil {
		drive.plan.Record(drive.history, k.id, oracle.Event{
			Call: call - drive.epoch, Reply: reply - drive.epoch, Units: op.Units, Subject: op.Subject,
			Kind: oracle.Take, Outcome: own, Tier: tier, Instance: k.instance,
		}, granted, i)
	}
	if out == oracle.Admitted && op.Fate != workloads.FateNone {
		k.plan(op, granted, followUp{reservation: dec.Reservation, cell: cell, takeCall: call - drive.epoch,
			takeReply: reply - drive.epoch})
	}
	return call, reply, out, tier
}

// take calls the strategy. A caller that is to be killed has a goroutine of its own, which ends
// with it: the deferred functions of the strategy still run, but what they send does not reach
// the store. If its last command comes from another goroutine, the caller goes on without the
// store, and its answer does not count.
func (k *worker) take(i int64, req quota.Request) (quota.Decision, error) {
	if k.drive.stand != nil {
		k.drive.stand(int(k.instance))
	}
	after := k.drive.plan.Kills(i)
	if after == 0 {
		return k.strategy.Take(k.Context(), req)
	}
	var own uint64
	ctx, dead := kill.After(k.Context(), after, func(context.Context) {
		if stacks.Current() == own {
			runtime.Goexit()
		}
	})
	dec, err := guard.Within(ctx, 0, guard.Grace(k.drive.deadline), "a decision",
		func(ctx context.Context) (quota.Decision, error) {
			own = stacks.Current()
			return k.strategy.Take(ctx, req)
		})
	var panicError *guard.PanicError
	switch {
	case dead():
		return quota.Decision{}, kill.Err
	case errors.As(err, &panicError):
		panic(panicError.Value)
	}
	return dec, err
}

// enter chooses the window that a request belongs to, and announces its units there. call is
// the reading of the clock that it is called at.
func (k *worker) enter(s *subject, units int64) (w *window, cell *windowCell, mark, call int64) {
	drive := k.drive
	w = drive.window(k.last)
	for {
		if drive.online {
			cell = s.cell(w.index)
			mark = k.begin(cell, units)
		}
		call = drive.timebase.nano()
		if call < w.end {
			return w, cell, mark, call
		}
		// A window ended since the worker last looked: the request belongs to the next.
		if drive.online {
			k.withdraw()
			cell.Withdraw(units)
		}
		w = drive.window(call)
	}
}

// told counts what a decision says, or the error in its place.
func (k *worker) told(dec *quota.Decision, err error) (out oracle.Outcome, tier uint8) {
	out = k.counts.Told(dec, err)
	if err != nil {
		k.drive.errOnce.Do(func() { k.drive.counts.FirstError = err })
		return out, 0
	}
	if dec.Tier != k.tier {
		k.tier, k.tierIndex = dec.Tier, k.drive.rec.tiers.index(dec.Tier)
	}
	return out, k.tierIndex
}

// begun is what a rejection needs of the moment of its request: the mark of its cell, and the limit in force.
type begun struct {
	mark  int64
	limit *inForce
}

// count has the online oracle count the outcome of a request, of which so many units were granted.
func (k *worker) count(cell *windowCell, out oracle.Outcome, units, granted int64, b begun) {
	switch out {
	case oracle.Admitted:
		k.admit(cell, granted)
		if granted < units {
			cell.Reject(units-granted, b.mark, k.drive.heldAgainst(b.limit))
		}
	case oracle.Failed, oracle.Elsewhere:
		cell.Fail(units)
	default:
		cell.Reject(units, b.mark, k.drive.heldAgainst(b.limit))
	}
}

// work runs a loop on every worker, and returns when each has ended or was given up.
func (d *drive) work(ctx context.Context, loop func(k *worker)) {
	crew := make([]*worker, d.workers)
	callers := make([]*monitor.Caller, d.workers)
	var group sync.WaitGroup
	group.Add(len(crew))
	for i := range crew {
		crew[i] = d.newWorker(ctx, i)
		callers[i] = &crew[i].Caller
	}
	end := monitor.WatchCalls(ctx, d.deadline, callers, func(i int, err *guard.HungError) {
		d.stop.Store(true)
		crew[i].hung = err
		d.hung = append(d.hung, err)
		group.Done()
	})
	for _, k := range crew {
		go func() {
			through := false
			defer func() { k.leaves(recover(), through, group.Done) }()
			k.Start()
			loop(k)
			through = true
		}()
	}
	group.Wait()
	end()
	for _, k := range crew {
		if k.hung != nil {
			k.lost(k.hung)
		}
		k.Close()
		d.end = max(d.end, k.last)
	}
}

// leaves ends a worker's goroutine. A panic of the strategy ends the pass: other
// strategies go on, and what was decided up to then is judged.
func (k *worker) leaves(value any, through bool, done func()) {
	if !k.Ended() {
		return
	}
	if value == nil && !through {
		value = "it ended its goroutine"
	}
	if value != nil {
		err := &guard.PanicError{Where: cmp.Or(k.calling(), "a caller"), Value: value, Stack: debug.Stack()}
		k.drive.crash.CompareAndSwap(nil, err)
		k.drive.stop.Store(true)
		k.lost(err)
	} else {
		k.finish()
	}
	done()
}

// calling names the call of the strategy that the worker is in; "" is none.
func (k *worker) calling() string {
	switch {
	case k.settling != nil && k.settling.fate == workloads.FateCommit:
		return "a commit"
	case k.settling != nil:
		return "a refund"
	case k.call != 0:
		return "a decision"
	default:
		return ""
	}
}

// lost ends a worker whose last call has no answer: what became of it is not known.
func (k *worker) lost(err error) {
	drive := k.drive
	now := drive.timebase.nano()
	switch {
	case k.settling != nil:
		k.settled(*k.settling, now, err)
	case k.call != 0:
		k.counts.Count(err)
		drive.errOnce.Do(func() { drive.counts.FirstError = err })
		k.lostTake(now)
	}
	k.finish()
}

// lostTake records a take that has no answer as one that failed.
func (k *worker) lostTake(now int64) {
	drive := k.drive
	op := &k.op
	if drive.online {
		subject := drive.subjects.at(op.Subject)
		window := drive.window(k.call)
		cell := subject.cell(window.index)
		if now >= window.end {
			drive.crossed(subject, window, now)
		}
		cell.Fail(op.Units)
	}
	if drive.history != nil {
		drive.history.Append(k.id, oracle.Event{
			Call: k.call - drive.epoch, Reply: now - drive.epoch, Units: op.Units, Subject: op.Subject,
			Kind: oracle.Take, Outcome: oracle.Failed, Instance: k.instance,
		})
	}
	drive.rec.recordLost(k.stripe, now-k.call, now-k.intended, drive.lateness.open)
	k.last = now
}

// recordLost adds a decision that has no answer: it took at least that long.
func (r *recorder) recordLost(s *stripe, service, response int64, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slot(oracle.Failed, 0)
	if open {
		into(&s.latency[i]).RecordAtLeast(response)
		into(&s.service[i]).RecordAtLeast(service)
		return
	}
	into(&s.latency[i]).RecordAtLeast(service)
}
