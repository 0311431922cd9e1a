package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/harness/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// drive is one measured pass of a request stream over open instances.
type drive struct {
	tb        *timebase
	instances []strategies.Strategy
	stream    workloads.Stream
	policy    *quota.Policy
	subjects  []subject
	workers   int
	// arrivals makes the loop open; nil is closed.
	arrivals workloads.Arrivals
	// requests is how many the stream may give; duration bounds the time, 0 for
	// no bound.
	requests int64
	duration int64
	// begins is told the moment at which the pass begins, before anything that
	// depends on it; nil for nobody.
	begins func(time.Time)
	// firstID is added to request indices, so that IDs are unique among passes.
	firstID uint64

	rec     *recorder
	history *oracle.History
	online  bool // keep the oracle's online counters

	epoch       int64 // when the pass began
	firstWindow int64 // the window in force then, which holds the initial fill
	end         int64 // when its last reply came
	stop        atomic.Bool
	win         atomic.Pointer[window]
	// next is written by every worker at every request; what they only read must
	// not share its cache line.
	_      [64]byte
	next   atomic.Int64
	_      [64]byte
	counts struct{ admitted, rejected, failed, prescribed, degraded atomic.Int64 }

	errOnce    sync.Once
	firstError error
	crash      atomic.Pointer[error]
	settled    settlement
	lateness   lateness
}

// fillCells tells the online counters what subjects had used before the pass.
func (d *drive) fillCells() {
	if !d.online {
		return
	}
	for i := range d.subjects {
		if s := &d.subjects[i]; s.initial != 0 {
			s.cell(d.firstWindow).Fill(s.initial)
		}
	}
}

// caught ends the pass where a strategy panics. The panic becomes the run's
// error: other strategies go on, and servers started for the run are stopped.
func (d *drive) caught() {
	if v := recover(); v != nil {
		err := fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		d.crash.CompareAndSwap(nil, &err)
		d.stop.Store(true)
	}
}

// tally is one worker's counts, written back when it ends.
type tally struct{ admitted, rejected, failed, prescribed, degraded, last int64 }

// run drives the stream until it ends, time is up or stop is set. Operations in
// flight when ctx ends fail with its error.
func (d *drive) run(ctx context.Context) {
	d.epoch = d.tb.nano()
	if d.begins != nil {
		d.begins(d.tb.time(d.epoch))
	}
	d.firstWindow = d.window(d.epoch).index
	d.fillCells()
	if d.arrivals != nil {
		d.runOpen(ctx)
		return
	}
	deadline := int64(math.MaxInt64)
	if d.duration > 0 {
		deadline = d.epoch + d.duration
	}
	var wg sync.WaitGroup
	lasts := make([]int64, d.workers)
	for w := range d.workers {
		wg.Go(func() {
			defer d.caught()
			k := d.newWorker(w)
			defer func() { lasts[w] = k.finish() }()
			var op workloads.Op
			for k.t.last < deadline && !d.stop.Load() {
				k.settleDue(ctx)
				i := d.next.Add(1) - 1
				if i >= d.requests {
					return
				}
				d.stream.At(i, &op)
				call, reply, out, tier := k.do(ctx, i, &op)
				d.rec.record(k.stripe, out, tier, reply-call)
			}
		})
	}
	wg.Wait()
	for _, l := range lasts {
		d.end = max(d.end, l)
	}
}

// worker is one caller.
type worker struct {
	d        *drive
	id       int
	instance uint8
	strategy strategies.Strategy
	stripe   *stripe
	t        tally
	agenda   agenda
}

func (d *drive) newWorker(id int) *worker {
	i := id % len(d.instances)
	return &worker{d: d, id: id, instance: uint8(i), strategy: d.instances[i], stripe: d.rec.stripe(id), t: tally{last: d.epoch}}
}

// finish adds the worker's counts to the pass and returns its last reply.
func (k *worker) finish() int64 {
	c := &k.d.counts
	c.admitted.Add(k.t.admitted)
	c.rejected.Add(k.t.rejected)
	c.failed.Add(k.t.failed)
	c.prescribed.Add(k.t.prescribed)
	c.degraded.Add(k.t.degraded)
	return k.t.last
}

// do issues one operation. The clock is read twice, around the call alone; the
// window is chosen by the worker's last reading, and corrected where that one
// lay before a boundary.
func (k *worker) do(ctx context.Context, i int64, op *workloads.Op) (call, reply int64, out oracle.Outcome, tier uint8) {
	d := k.d
	s := &d.subjects[op.Subject]
	req := quota.Request{ID: d.firstID + uint64(i) + 1, Subject: s.name, Policy: d.policy, Units: op.Units}
	var c *windowCell
	var mark int64
	w := d.window(k.t.last)
	for {
		if d.online {
			c = s.cell(w.index)
			mark = c.Begin(op.Units)
		}
		if call = d.tb.nano(); call < w.end {
			break
		}
		// A window ended since the worker last looked: the request belongs to the next.
		if d.online {
			c.Withdraw(op.Units)
		}
		w = d.window(call)
	}
	dec, err := k.strategy.Take(ctx, req)
	reply = d.tb.nano()

	k.t.last = reply
	switch {
	case err != nil:
		out = oracle.Failed
		k.t.failed++
		if errors.Is(err, strategies.ErrPrescribed) {
			k.t.prescribed++
		}
		d.errOnce.Do(func() { d.firstError = err })
	case dec.Admitted:
		out = oracle.Admitted
		k.t.admitted++
	default:
		out = oracle.Rejected
		if dec.Degraded {
			out = oracle.RejectedDegraded
		}
		k.t.rejected++
	}
	if err == nil {
		tier = d.rec.tiers.index(dec.Tier)
		if dec.Degraded {
			k.t.degraded++
		}
	}
	if d.online {
		if reply >= w.end {
			for i, last := w.index, d.window(reply).index; i <= last; i++ {
				s.cell(i).Crossed()
			}
		}
		switch out {
		case oracle.Admitted:
			c.Admit(op.Units)
		case oracle.Failed:
			c.Fail(op.Units)
		default:
			c.Reject(op.Units, mark, d.policy.Limit)
		}
	}
	if d.history != nil {
		d.history.Append(k.id, oracle.Event{
			Call: call - d.epoch, Reply: reply - d.epoch, Units: op.Units, Subject: op.Subject,
			Kind: oracle.Take, Outcome: out, Tier: tier, Instance: k.instance,
		})
	}
	if out == oracle.Admitted && op.Fate != workloads.FateNone {
		k.plan(op, dec, c)
	}
	return call, reply, out, tier
}

// window returns the window that contains the moment t of the run's clock.
func (d *drive) window(t int64) *window {
	if w := d.win.Load(); w != nil && t >= w.start && t < w.end {
		return w
	}
	w := &window{start: math.MinInt64, end: math.MaxInt64}
	if d.policy.Window.Kind.Tumbling() {
		at := d.tb.time(t)
		s := d.policy.Window.At(at)
		*w = window{index: s.Index, start: t - int64(at.Sub(s.Start)), end: t + int64(s.End.Sub(at))}
	}
	d.win.Store(w)
	return w
}
