package measure

import (
	"context"
	"errors"
	"runtime"

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
	number   int64            // of the operation in the stream
	call     int64            // when the take under way was called; 0 if none is
	release  release          // the request under way of an open loop
	settling *followUp        // the commit or refund under way; nil if none is
	hung     *guard.HungError // why the worker was given up; nil if it was not
	follow   followUp
	id       int
	instance uint8
	strategy strategies.Strategy
	stripe   *stripe
	last     int64          // the latest reading of the clock, which windows and follow-ups go by
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
	readings    []reading  // what decisions said of counters
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

// serve takes one operation of the stream through its steps, and returns how long its decision took.
func (k *worker) serve(number int64) (took int64) {
	k.operation(number)
	asked := request{}
	k.decision(&asked)
	k.recording(&asked)
	k.planSettlement(&asked)
	return asked.reply - asked.call
}

// request is one operation on its way.
type request struct {
	// subject and window are whose quota the operation takes units of.
	subject *subject
	window  *window
	cell    *windowCell
	// mark is that of the cell as the units were announced, and limit the one in force at the call.
	mark  int64
	limit *inForce
	// call and reply are the readings of the clock around the call of the strategy.
	call, reply int64
	decision    quota.Decision
	err         error
	granted     int64 // units
	outcome     oracle.Outcome
	tier        uint8
}

// operation reads the operation with that number from the stream.
func (k *worker) operation(number int64) {
	k.number = number
	k.drive.stream.At(number, &k.op)
}

// decision has the strategy decide the operation. The clock is read twice, around the call alone; the
// window is chosen by the worker's last reading, and corrected if that one lay before a boundary.
func (k *worker) decision(request *request) {
	drive := k.drive
	request.subject = drive.subjects.at(k.op.Subject)
	req := quota.Request{
		ID: drive.firstID + uint64(k.number) + 1, Subject: request.subject.name, Policy: drive.policy, Units: k.op.Units,
	}
	if k.op.Fate != workloads.FateNone {
		req.Settles = true
		req.Life = drive.life
	}
	drive.plan.ChargeSecond(&req, k.number)
	k.enterWindow(request)
	request.limit = drive.limit.Load() // in force since before the call, or since after it: heldAgainst allows for both
	req.Policy = request.limit.policy
	k.call = request.call
	if everyCall {
		k.Beat()
	}
	request.decision, request.err = k.take(k.number, req)
	request.reply = drive.timebase.nano()
	if request.reply-request.call > monitor.LongCall {
		request.err = k.Returned(request.err)
	}
	k.call = 0
	k.last = request.reply
}

// enterWindow chooses the window that the operation belongs to, announces its units there, and reads the clock, in this
// order: see [oracle.Cell].
func (k *worker) enterWindow(request *request) {
	drive := k.drive
	request.window = drive.window(k.last)
	for {
		if drive.online {
			request.cell = request.subject.cell(request.window.index)
			request.mark = k.announce(request.cell, k.op.Units)
		}
		request.call = drive.timebase.nano()
		if request.call < request.window.end {
			return
		}
		// A window ended since the worker last looked: the request belongs to the next.
		if drive.online {
			k.withdraw()
			request.cell.Withdraw(k.op.Units)
		}
		request.window = drive.window(request.call)
	}
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

// recording records the answer: in the worker's counts, in the oracle's online counters, in the history, and its
// latency in a histogram.
func (k *worker) recording(request *request) {
	drive := k.drive
	if request.err == nil {
		request.granted, request.err = request.decision.Units(k.op.Units)
	}
	request.outcome, request.tier = k.outcome(&request.decision, request.err)
	own := request.outcome // of the first quota
	if request.decision.BySecond && !request.decision.Admitted {
		own = oracle.Elsewhere
	}
	if drive.online {
		if request.reply >= request.window.end {
			drive.crossed(request.subject, request.window, request.reply)
		}
		k.count(request, own)
	}
	if drive.history != nil {
		drive.plan.Record(drive.history, k.id, oracle.Event{
			Call: request.call - drive.epoch, Reply: request.reply - drive.epoch, Units: k.op.Units, Subject: k.op.Subject,
			Kind: oracle.Take, Outcome: own, Tier: request.tier, Instance: k.instance,
		}, request.granted, k.number)
	}
	k.latency(request)
	k.keepReading(request)
}

// latency records how long the decision took. In an open loop a response counts from the intended start.
func (k *worker) latency(request *request) {
	drive := k.drive
	service := request.reply - request.call
	if drive.arrivals == nil {
		drive.rec.record(k.stripe, request.outcome, request.tier, request.decision.Degraded, service)
		return
	}
	response := request.reply - k.release.intended
	wait := request.call - k.release.released
	times := openTimes{response, service, wait}
	drive.rec.recordOpen(k.stripe, request.outcome, request.tier, request.decision.Degraded, times)
	drive.slow.record(k.release.intended-drive.epoch, response)
}

// outcome counts what a decision says, or the error in its place.
func (k *worker) outcome(dec *quota.Decision, err error) (out oracle.Outcome, tier uint8) {
	out = k.counts.Told(dec, err)
	if err != nil {
		k.drive.errOnce.Do(func() { k.drive.counts.FirstError = err })
		return out, 0
	}
	if dec.Tier != k.tier {
		k.tier = dec.Tier
		k.tierIndex = k.drive.rec.tiers.index(dec.Tier)
	}
	return out, k.tierIndex
}

// count has the online oracle count the outcome of the operation.
func (k *worker) count(request *request, outcome oracle.Outcome) {
	units := k.op.Units
	switch outcome {
	case oracle.Admitted:
		k.admit(request.cell, request.granted)
		if request.granted < units {
			request.cell.Reject(units-request.granted, request.mark, k.drive.heldAgainst(request.limit))
		}
	case oracle.Failed, oracle.Elsewhere:
		request.cell.Fail(units)
	default:
		request.cell.Reject(units, request.mark, k.drive.heldAgainst(request.limit))
	}
}

// announce announces units to the oracle, before the clock is read. A worker that
// takes several requests at once announces them all: what is announced too early,
// or never asked for, only makes the oracle's online count more careful.
func (k *worker) announce(cell *windowCell, units int64) (mark int64) {
	if cell != k.announcedTo || k.announced < units {
		k.withdraw()
		k.announcedTo = cell
		k.announced = units * k.share
		k.mark = cell.Begin(k.announced)
	}
	k.announced -= units
	return k.mark
}

// withdraw takes back announced units that were not asked for.
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
	k.abandonUnsettled()
	k.flush()
	k.withdraw()
	k.drive.counting.Lock()
	defer k.drive.counting.Unlock()
	k.drive.counts.Add(k.counts)
	k.drive.readings = append(k.drive.readings, k.readings...)
}
