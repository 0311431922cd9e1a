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
	d        *drive
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
	k := &worker{d: d, id: id, instance: uint8(i), strategy: d.instances[i], stripe: d.rec.stripe(id),
		share: 1, last: d.epoch}
	k.Init(ctx, k.calling)
	return k
}

// begin announces units to the oracle, before the clock is read. A worker that
// takes several requests at once announces them all: what is announced too early,
// or never asked for, only makes the oracle's online count more careful.
func (k *worker) begin(c *windowCell, units int64) (mark int64) {
	if c != k.announcedTo || k.announced < units {
		k.withdraw()
		k.announcedTo = c
		k.announced = units * k.share
		k.mark = c.Begin(k.announced)
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
func (k *worker) admit(c *windowCell, units int64) {
	if c != k.cell {
		k.flush()
		k.cell = c
	}
	k.admitted += units
	if k.admissions++; k.d.shown && k.admissions >= liveBatch {
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
	k.d.counting.Lock()
	defer k.d.counting.Unlock()
	k.d.counts.Add(k.counts)
}

// do issues one operation. The clock is read twice, around the call alone; the
// window is chosen by the worker's last reading, and corrected if that one
// lay before a boundary.
func (k *worker) do(i int64, op *workloads.Op) (call, reply int64, out oracle.Outcome, tier uint8) {
	d := k.d
	s := d.subjects.at(op.Subject)
	req := quota.Request{ID: d.firstID + uint64(i) + 1, Subject: s.name, Units: op.Units}
	if op.Fate != workloads.FateNone {
		req.Settles = true
		req.Life = d.life
	}
	d.plan.ChargeSecond(&req, i)
	w, c, mark, call := k.enter(s, op.Units)
	limit := d.limit.Load() // after the clock was read: what is in force now was so then, or later
	req.Policy = limit.policy
	k.call = call
	if everyCall {
		k.Beat()
	}
	dec, err := k.take(i, req)
	reply = d.tb.nano()
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
	if d.online {
		if reply >= w.end {
			d.crossed(s, w, reply)
		}
		k.count(c, own, op.Units, granted, begun{mark, limit})
	}
	if d.history != nil {
		d.plan.Record(d.history, k.id, oracle.Event{
			Call: call - d.epoch, Reply: reply - d.epoch, Units: op.Units, Subject: op.Subject,
			Kind: oracle.Take, Outcome: own, Tier: tier, Instance: k.instance,
		}, granted, i)
	}
	if out == oracle.Admitted && op.Fate != workloads.FateNone {
		k.plan(op, granted, followUp{reservation: dec.Reservation, cell: c, takeCall: call - d.epoch, takeReply: reply - d.epoch})
	}
	return call, reply, out, tier
}

// take calls the strategy. A caller that is to be killed has a goroutine of its own, which ends
// with it: the deferred functions of the strategy still run, but what they send does not reach
// the store. If its last command comes from another goroutine, the caller goes on without the
// store, and its answer does not count.
func (k *worker) take(i int64, req quota.Request) (quota.Decision, error) {
	if k.d.stand != nil {
		k.d.stand(int(k.instance))
	}
	after := k.d.plan.Kills(i)
	if after == 0 {
		return k.strategy.Take(k.Context(), req)
	}
	var own uint64
	ctx, dead := kill.After(k.Context(), after, func(context.Context) {
		if stacks.Current() == own {
			runtime.Goexit()
		}
	})
	dec, err := guard.Within(ctx, 0, guard.Grace(k.d.deadline), "a decision", func(ctx context.Context) (quota.Decision, error) {
		own = stacks.Current()
		return k.strategy.Take(ctx, req)
	})
	var p *guard.PanicError
	switch {
	case dead():
		return quota.Decision{}, kill.Err
	case errors.As(err, &p):
		panic(p.Value)
	}
	return dec, err
}

// enter chooses the window that a request belongs to, and announces its units there. call is
// the reading of the clock that it is called at.
func (k *worker) enter(s *subject, units int64) (w *window, c *windowCell, mark, call int64) {
	d := k.d
	w = d.window(k.last)
	for {
		if d.online {
			c = s.cell(w.index)
			mark = k.begin(c, units)
		}
		call = d.tb.nano()
		if call < w.end {
			return w, c, mark, call
		}
		// A window ended since the worker last looked: the request belongs to the next.
		if d.online {
			k.withdraw()
			c.Withdraw(units)
		}
		w = d.window(call)
	}
}

// told counts what a decision says, or the error in its place.
func (k *worker) told(dec *quota.Decision, err error) (out oracle.Outcome, tier uint8) {
	out = k.counts.Told(dec, err)
	if err != nil {
		k.d.errOnce.Do(func() { k.d.counts.FirstError = err })
		return out, 0
	}
	if dec.Tier != k.tier {
		k.tier, k.tierIndex = dec.Tier, k.d.rec.tiers.index(dec.Tier)
	}
	return out, k.tierIndex
}

// begun is what a rejection needs of the moment of its request: the mark of its cell, and the limit in force.
type begun struct {
	mark  int64
	limit *inForce
}

// count has the online oracle count the outcome of a request, of which so many units were granted.
func (k *worker) count(c *windowCell, out oracle.Outcome, units, granted int64, b begun) {
	switch out {
	case oracle.Admitted:
		k.admit(c, granted)
		if granted < units {
			c.Reject(units-granted, b.mark, k.d.heldAgainst(b.limit))
		}
	case oracle.Failed, oracle.Elsewhere:
		c.Fail(units)
	default:
		c.Reject(units, b.mark, k.d.heldAgainst(b.limit))
	}
}

// work runs a loop on every worker, and returns when each has ended or was given up.
func (d *drive) work(ctx context.Context, loop func(k *worker)) {
	crew := make([]*worker, d.workers)
	callers := make([]*monitor.Caller, d.workers)
	var wg sync.WaitGroup
	wg.Add(len(crew))
	for i := range crew {
		crew[i] = d.newWorker(ctx, i)
		callers[i] = &crew[i].Caller
	}
	end := monitor.WatchCalls(ctx, d.deadline, callers, func(i int, err *guard.HungError) {
		d.stop.Store(true)
		crew[i].hung = err
		d.hung = append(d.hung, err)
		wg.Done()
	})
	for _, k := range crew {
		go func() {
			through := false
			defer func() { k.leaves(recover(), through, wg.Done) }()
			k.Start()
			loop(k)
			through = true
		}()
	}
	wg.Wait()
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
func (k *worker) leaves(v any, through bool, done func()) {
	if !k.Ended() {
		return
	}
	if v == nil && !through {
		v = "it ended its goroutine"
	}
	if v != nil {
		err := &guard.PanicError{Where: cmp.Or(k.calling(), "a caller"), Value: v, Stack: debug.Stack()}
		k.d.crash.CompareAndSwap(nil, err)
		k.d.stop.Store(true)
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
	d := k.d
	now := d.tb.nano()
	switch {
	case k.settling != nil:
		k.settled(*k.settling, now, err)
	case k.call != 0:
		k.counts.Count(err)
		d.errOnce.Do(func() { d.counts.FirstError = err })
		k.lostTake(now)
	}
	k.finish()
}

// lostTake records a take that has no answer as one that failed.
func (k *worker) lostTake(now int64) {
	d := k.d
	op := &k.op
	if d.online {
		s := d.subjects.at(op.Subject)
		w := d.window(k.call)
		c := s.cell(w.index)
		if now >= w.end {
			d.crossed(s, w, now)
		}
		c.Fail(op.Units)
	}
	if d.history != nil {
		d.history.Append(k.id, oracle.Event{
			Call: k.call - d.epoch, Reply: now - d.epoch, Units: op.Units, Subject: op.Subject,
			Kind: oracle.Take, Outcome: oracle.Failed, Instance: k.instance,
		})
	}
	d.rec.recordLost(k.stripe, now-k.call, now-k.intended, d.lateness.open)
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
