package sim

import (
	"context"
	"math"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// drive is one pass of a request stream over a site.
type drive struct {
	cfg       *Config
	scheduler *sched.Scheduler
	site      *site
	clock     quota.Clock
	policy    *quota.Policy // in force
	stream    workloads.Stream
	// arrivals makes the loop open; nil is closed.
	arrivals workloads.Arrivals
	requests int64

	epoch      int64 // nanoseconds since 1970
	truth      truth
	committing []*holding // sessions whose commit has no answer yet
	history    *oracle.History
	series     *sampler

	issued     int64
	counts     harness.Counts
	settlement results.Settlement

	tiers            []quota.Tier
	hits             []int64 // decisions by tier
	folded           int64   // decisions of tiers beyond maxTiers
	service, settled *results.Histogram
	parts            [len(outcomeNames)][maxTiers]*results.Histogram // of response times; nil for none

	// What is shown while it goes on; live is nil if nothing is.
	live      *LiveFigures
	liveParts map[[2]uint8]*stat.LiveLatency

	op      workloads.Op // that a stream writes to: one at a time, and each has a copy
	next    int64
	callers int
	idle    []*caller
	backlog []due
	// inFlight requests, and sessions that are settling.
	inFlight, settling int64
	// rest is called when both are over, and no request is left.
	rest    func()
	maxBack int
	over    bool // no more requests will come
	lastEnd int64
	stop    func() bool
	aborted func() bool // the run is to end as soon as possible
	witness *witness.Witness
	judged  bool // what ends from here on is not part of the run
	// rejectedLast is the subject of the last rejection; "" for none.
	rejectedLast quota.Subject
	changes      []oracle.LimitChange // of the limit, as they happened
	changeErr    error                // why one of the limit, or of a counter in Redis, failed
	number       int                  // of the strategy, for [Progress]
	// placement is the random stream that sends requests to instances.
	placement uint64
}

// due is a request that waits for a free caller.
type due struct {
	index, intended int64
}

// caller is one of those who ask, as a coroutine that is used again and again.
type caller struct {
	work due
	wake quota.Event
}

func (d *drive) now() int64 { return d.scheduler.Nano() }

// windowAt is the window of a moment.
func (d *drive) windowAt(now int64) window {
	w := window{start: math.MinInt64, end: math.MaxInt64}
	if d.policy.Window.Kind.Tumbling() {
		span := d.policy.Window.At(time.Unix(0, now).UTC())
		w = window{span.Index, span.Start.UnixNano(), span.End.UnixNano()}
	}
	return w
}

// begin makes the actors that issue requests.
func (d *drive) begin() {
	if d.arrivals != nil {
		d.scheduler.Go("arrivals", d.issue)
		return
	}
	for range d.cfg.Workers {
		d.scheduler.Go("caller", d.loop)
	}
	d.callers = d.cfg.Workers
}

// ended reports whether requests are no longer to be issued.
func (d *drive) ended() bool {
	d.tell()
	return d.over || d.next >= d.requests || d.cfg.Duration > 0 && d.now()-d.epoch >= int64(d.cfg.Duration) ||
		d.stop != nil && d.stop()
}

// ownTime is what a caller needs for a decision in its own memory.
const ownTime = time.Microsecond

// loop is a caller of a closed loop.
func (d *drive) loop(ctx context.Context) {
	for !d.ended() {
		i := d.next
		began := d.now()
		d.next++
		d.do(ctx, due{i, began})
		// A decision without a store takes no virtual time, and a caller who asks
		// again at once would never let any pass.
		if d.now() == began && d.clock.Sleep(ctx, ownTime) != nil {
			return
		}
	}
	d.callers--
	if d.callers == 0 {
		d.finish()
	}
}

// issue starts the requests of an open loop when they are due.
func (d *drive) issue(ctx context.Context) {
	for !d.ended() {
		at, ok := d.arrivals.Next()
		if !ok || d.cfg.Duration > 0 && at >= d.cfg.Duration {
			break
		}
		intended := d.epoch + int64(at)
		if wait := intended - d.now(); wait > 0 {
			if d.clock.Sleep(ctx, time.Duration(wait)) != nil {
				return
			}
		}
		d.start(due{d.next, intended})
		d.next++
	}
	d.finish()
}

// start gives a request to a caller, or lets it wait for one.
func (d *drive) start(w due) {
	if n := len(d.idle); n > 0 {
		caller := d.idle[n-1]
		d.idle = d.idle[:n-1]
		caller.work = w
		caller.wake.Set()
		return
	}
	if d.callers == d.cfg.Workers {
		d.backlog = append(d.backlog, w)
		d.maxBack = max(d.maxBack, len(d.backlog))
		return
	}
	d.callers++
	c := &caller{work: w}
	d.scheduler.Go("caller", func(ctx context.Context) { d.serve(ctx, c) })
}

// serve is a caller of an open loop.
func (d *drive) serve(ctx context.Context, c *caller) {
	for {
		d.do(ctx, c.work)
		if d.aborted() {
			d.backlog = nil // they are not issued any more
		}
		if len(d.backlog) > 0 {
			c.work = d.backlog[0]
			d.backlog = d.backlog[1:]
			continue
		}
		if d.over {
			return
		}
		if c.wake == nil {
			c.wake = d.clock.NewEvent()
		} else {
			sched.Renew(c.wake)
		}
		d.idle = append(d.idle, c)
		if c.wake.Wait(ctx) != nil || c.work.index < 0 {
			return
		}
	}
}

// finish sends idle callers home.
func (d *drive) finish() {
	d.over = true
	for _, caller := range d.idle {
		caller.work.index = -1
		caller.wake.Set()
	}
	d.idle = nil
	d.calm()
}
