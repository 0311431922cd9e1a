package measure

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// release is one request of an open loop, due at an intended moment.
type release struct {
	number   int64 // of its operation
	intended int64 // nanoseconds of the timebase, as released
	released int64
}

// lateness is how far an open loop fell behind its schedule.
type lateness struct {
	pacer                   *results.Histogram // release after the intended start
	backlogHalf, backlogEnd int64              // released and not yet started
	released                int64
	unfinished              int64 // never started: they enter as "at least"
	open                    bool
}

// saturated reports whether the backlog grew all through the schedule: the
// system under test takes less than it was offered.
func (l *lateness) saturated() bool {
	return l.open && l.backlogEnd > 10 && l.backlogEnd > l.backlogHalf*5/4 && l.backlogEnd*50 > l.released
}

// drainFactor and drainAtLeast are how long a backlog may be worked off after the last release, relative to the
// schedule and at least.
const (
	drainFactor  = 1
	drainAtLeast = int64(500 * time.Millisecond)
)

// maxBacklogCap bounds the queue. If it is full, the pacer is late.
const maxBacklogCap = 1 << 20

// openLoop releases requests at their intended moments, whatever becomes of the
// earlier ones, and counts their latency from there.
func (d *drive) openLoop(ctx context.Context) {
	queue := make(chan release, min(d.requests, maxBacklogCap))
	d.lateness = lateness{open: true, pacer: results.NewHistogram()}
	d.slow = newSlowest(scheduleLength(d.duration, d.requests, d.perSecond))
	var pacing sync.WaitGroup
	var started atomic.Int64
	pacing.Go(func() {
		defer close(queue)
		d.pace(queue, &started)
	})

	var giveUp atomic.Bool
	var drained sync.WaitGroup
	over := make(chan struct{})
	drained.Go(func() {
		pacing.Wait()
		grace := max((d.timebase.nano()-d.epoch)*drainFactor, drainAtLeast)
		timer := time.AfterFunc(time.Duration(grace), func() { giveUp.Store(true) })
		<-over
		timer.Stop()
	})
	d.work(ctx, func(worker *worker) {
		for {
			release, ok := worker.nextRelease(queue)
			if !ok {
				return
			}
			if giveUp.Load() || d.stop.Load() {
				d.recordUnfinished(worker.stripe, release)
				continue
			}
			started.Add(1)
			worker.release = release
			worker.Beat()
			worker.serve(release.number)
		}
	})
	close(over)
	drained.Wait()
}

// nextRelease waits for a request, and does the worker's follow-ups that become
// due meanwhile.
func (k *worker) nextRelease(queue <-chan release) (r release, ok bool) {
	for {
		k.settleDue()
		k.Rest()
		due, some := k.agenda.next()
		if !some {
			r, ok = <-queue
			return r, ok
		}
		timer := time.NewTimer(time.Duration(due - k.drive.timebase.nano()))
		select {
		case r, ok = <-queue:
			timer.Stop()
			return r, ok
		case <-timer.C:
			k.last = k.drive.timebase.nano()
			k.Beat()
		}
	}
}

// recordUnfinished records a request that was due and never started with the
// time it had waited by then: leaving it out would flatter slow strategies.
func (d *drive) recordUnfinished(s *stripe, r release) {
	now := d.timebase.nano()
	s.mu.Lock()
	defer s.mu.Unlock()
	into(&s.latency[slot(oracle.Failed, 0)]).RecordAtLeast(now - r.intended)
	d.slow.record(r.intended-d.epoch, now-r.intended)
	atomic.AddInt64(&d.lateness.unfinished, 1)
}

// glance is how long the pacer sleeps at most before it looks whether the pass is to
// end, in nanoseconds.
const glance = int64(100 * time.Millisecond)

// waitFor waits for a moment of the schedule; false says that the pass ends before it.
func (d *drive) waitFor(pacer *pacer, due int64) bool {
	for due-d.timebase.nano() > 2*glance {
		if d.over() {
			return false
		}
		pacer.wait(d.timebase.nano() + glance)
	}
	pacer.wait(due)
	return true
}

// pace releases the schedule.
func (d *drive) pace(queue chan<- release, started *atomic.Int64) {
	pacer := newPacer(d.timebase.nano, d.perSecond)
	defer pacer.close()
	halfway := false
	var i int64
	for i = 0; i < d.requests && !d.over(); i++ {
		next, ok := d.arrivals.Next()
		due := int64(next)
		if !ok || d.duration > 0 && due >= d.duration {
			break
		}
		intended := d.epoch + due
		if !d.waitFor(pacer, intended) {
			break
		}
		now := d.timebase.nano()
		d.lateness.pacer.Record(now - intended)
		queue <- release{number: d.number(i), intended: intended, released: now}
		if d.duration > 0 && !halfway && due >= d.duration/2 {
			halfway = true
			d.lateness.backlogHalf = i + 1 - started.Load()
		}
		if d.duration == 0 && i == d.requests/2 {
			d.lateness.backlogHalf = i + 1 - started.Load()
		}
	}
	d.lateness.released = i
	d.lateness.backlogEnd = i - started.Load()
}
