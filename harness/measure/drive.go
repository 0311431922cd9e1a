package measure

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// drive is one measured pass of a request stream over open instances.
type drive struct {
	timebase  *timebase
	instances []strategies.Strategy
	stand     func(instance int) // waits if it is to stand still
	stream    workloads.Stream
	policy    *quota.Policy // as the pass begins
	subjects  *subjects
	workers   int
	// arrivals makes the loop open; nil is closed.
	arrivals workloads.Arrivals
	// requests is how many the stream may give; duration bounds the time, 0 for
	// no bound.
	requests int64
	duration int64
	// Of so many peers, this process has the operations place, place+peers and so on of the stream; requests are its own.
	place, peers int64
	// perSecond is the rate of the arrivals; 0 if a trace gives them.
	perSecond float64
	// begins is told the moment at which the pass begins, before anything that
	// depends on it; nil if none is told.
	begins func(time.Time)
	// deadline is how long one call may take; 0 watches none.
	deadline time.Duration
	// life is how long an admitted request that settles can be completed.
	life time.Duration
	// firstID is added to request indices, so that IDs are unique among passes.
	firstID uint64

	rec     *recorder
	history *oracle.History
	plan    *harness.Plan // nil while warming up, which has one quota
	// abandoned is set if the judgement goes on by itself, and closes the history.
	abandoned bool
	online    bool // keep the oracle's online counters
	shown     bool // to [Live], while the pass goes on
	shadowed  bool // keep what decisions say of counters
	// crossing is how many requests a closed loop gives at least, though its time is over, within [crossingGrace]: one
	// subject is asked for more than its limit by them. 0 if time alone counts.
	crossing int64
	// longCrossings is set if each worker has several requests of each crossing.
	longCrossings bool

	epoch       int64 // when the pass began
	firstWindow int64 // the window in force then, which holds the initial fill
	end         int64 // when its last reply came
	stop        atomic.Bool
	// full is set if the pass ended because its history is nearly full.
	full atomic.Bool
	win  atomic.Pointer[window]
	// limit changes in mid-run; lowest is the lowest of all.
	limit  atomic.Pointer[inForce]
	lowest int64
	// next is written by every worker at every request; what they only read must
	// not share its cache line.
	_           [64]byte
	next        atomic.Int64
	_           [64]byte
	counting    sync.Mutex
	counts      harness.Counts // under counting until the pass is over; errOnce guards the first error
	readings    []reading      // likewise
	errOnce     sync.Once
	crash       atomic.Pointer[guard.PanicError]
	hung        []*guard.HungError // of workers that were given up
	settlements settlements
	lateness    lateness
	slow        *slowest // of an open loop
}

// fillCells tells the online counters what subjects had used before the pass.
func (d *drive) fillCells() {
	if !d.online {
		return
	}
	for _, subject := range d.subjects.all() {
		if subject.initial != 0 {
			subject.cell(d.firstWindow).Fill(subject.initial)
		}
	}
}

// close removes the history, unless its judgement was given up and does that. It leaves the histograms to later
// passes, unless a worker that was given up may still record.
func (d *drive) close() error {
	var err error
	if !d.abandoned {
		err = d.history.Close()
	}
	if len(d.hung) == 0 {
		d.rec.release()
	}
	return err
}

// run has the workers take operations of the stream until it ends, time is up or stop is set. Operations in
// flight when ctx ends fail with its error.
func (d *drive) run(ctx context.Context) {
	d.begin()
	if d.arrivals != nil {
		d.openLoop(ctx)
	} else {
		d.closedLoop(ctx)
	}
}

// begin sets when the pass began, and what is in force then.
func (d *drive) begin() {
	d.epoch = d.timebase.nano()
	if d.begins != nil {
		d.begins(d.timebase.time(d.epoch))
	}
	d.putInForce()
	d.firstWindow = d.window(d.epoch).index
	d.fillCells()
}

// closedLoop has each worker ask again as soon as it has an answer.
func (d *drive) closedLoop(ctx context.Context) {
	deadline := int64(math.MaxInt64)
	if d.duration > 0 {
		deadline = d.epoch + d.duration
	}
	going := func(now int64) bool {
		return now < deadline || d.next.Load() < d.crossing && now < deadline+int64(crossingGrace)
	}
	d.work(ctx, func(worker *worker) {
		took := int64(0)
		for going(worker.last) && !d.over() {
			worker.Beat()
			end := d.next.Add(worker.share)
			for i := end - worker.share; i < min(end, d.requests) && !d.stop.Load(); i++ {
				worker.settleDue()
				took = worker.serve(d.number(i))
			}
			if end >= d.requests {
				return
			}
			worker.share = d.nextShare(took)
		}
	})
}

// crossingGrace is how much longer than planned a closed loop lasts at most, until it has asked one subject for more
// than its limit.
const crossingGrace = 3 * time.Second

// nextShare is how many requests a worker takes from the stream at once, after one that took ns nanoseconds: one, so
// that all workers are on the same crossing at the same time, or two if a crossing is long enough for that. If a
// decision takes less time than the workers need to pass the counter on to each other, only as many as there are
// processors are at work anyway, and the counter would be most of what is measured.
func (d *drive) nextShare(ns int64) int64 {
	switch {
	case ns < 1000:
		return 8
	case d.longCrossings:
		return 2
	}
	return 1
}

// over reports whether no further request is to be issued. A history that is
// nearly full ends the pass: what cannot be judged need not be run.
func (d *drive) over() bool {
	if d.history != nil && d.history.Full() && !d.stop.Load() {
		d.full.Store(true)
		d.stop.Store(true)
	}
	return d.stop.Load()
}

// crossed marks the windows from the one that a request was called in to that of its reply.
func (d *drive) crossed(s *subject, w *window, reply int64) {
	for i, last := w.index, d.window(reply).index; i <= last; i++ {
		s.cell(i).Crossed()
	}
}

// window returns the window that contains the moment t of the run's clock.
func (d *drive) window(t int64) *window {
	if window := d.win.Load(); window != nil && t >= window.start && t < window.end {
		return window
	}
	fresh := &window{start: math.MinInt64, end: math.MaxInt64}
	if d.policy.Window.Kind.Tumbling() {
		at := d.timebase.time(t)
		span := d.policy.Window.At(at)
		*fresh = window{index: span.Index, start: t - int64(at.Sub(span.Start)), end: t + int64(span.End.Sub(at))}
	}
	d.win.Store(fresh)
	return fresh
}

// rate is the answers per second that a finished pass reached, prescribed errors
// among them.
func (d *drive) rate() float64 {
	n := d.counts.Admitted + d.counts.Rejected + d.counts.Prescribed.Total()
	return float64(n) / time.Duration(max(d.end-d.epoch, 1)).Seconds()
}

// number is that of this process' i-th operation in the stream.
func (d *drive) number(i int64) int64 { return i*max(d.peers, 1) + d.place }
