package measure

import (
	"context"
	"math"
	"os"
	"runtime/metrics"
	"sort"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/machine"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// watchEvery is the distance in nanoseconds between two readings of a pass.
const watchEvery = int64(5 * time.Millisecond)

// mostSlices is how many slices of a pass a result keeps.
const mostSlices = 20

// watch reads at short intervals of a pass how long threads of this program, and of
// the servers that were started for it, were ready to run and had no core. It also
// notices how late it is itself: a program that nothing disturbs is punctual.
type watch struct {
	tb    *timebase
	queue *machine.RunQueue // nil where the system does not tell
	own   int               // this process
	epoch int64

	waits  []machine.Wait
	before map[int]machine.Wait // by thread
	marks  []mark
	hiccup *results.Histogram
	gosched, gcPauses,
	goschedEnd, gcPausesEnd *metrics.Float64Histogram

	stop atomic.Bool
	done chan struct{}
}

// mark is one reading: what happened since the one before.
type mark struct {
	at int64 // of the run's clock
	// harness and stores are the nanoseconds that all their threads waited together.
	harness, stores int64
	// longest is what the thread waited that waited most, and mean the mean of its
	// waits.
	longest, mean int64
	late          int64 // how late the reading was
}

// newWatch begins to read; end ends it. Threads wait by the wall clock: under any
// other one, nothing is read.
func newWatch(ctx context.Context, tb *timebase, in []*siteStore) *watch {
	if tb != wallTime {
		return &watch{tb: tb, hiccup: results.NewHistogram()}
	}
	w := &watch{tb: tb, own: os.Getpid(), before: map[int]machine.Wait{}, hiccup: results.NewHistogram(), done: make(chan struct{})}
	pids := []int{w.own}
	for _, st := range in {
		if p, ok := st.Store.(stores.Placed); ok && p.Place() == stores.StartedHere {
			if more, err := p.Processes(ctx); err == nil {
				pids = append(pids, more...)
			}
		}
	}
	// A system that does not tell leaves the hiccups.
	if q, err := machine.NewRunQueue(tb.nano, pids...); err == nil {
		w.queue = q
		w.waits = q.Sample(w.waits)
		for _, t := range w.waits {
			w.before[t.Thread] = t
		}
	}
	w.gosched, w.gcPauses = goHistograms()
	w.epoch = tb.nano()
	go w.run()
	return w
}

// run reads until end is called.
func (w *watch) run() {
	defer close(w.done)
	// A pacer would keep one of Go's threads from running anything while it sleeps.
	t := time.NewTimer(0)
	defer t.Stop()
	for at := w.epoch + watchEvery; !w.stop.Load(); at = max(at+watchEvery, w.tb.nano()) {
		t.Reset(time.Duration(at - w.tb.nano()))
		<-t.C
		now := w.tb.nano()
		w.hiccup.Record(now - at)
		w.marks = append(w.marks, w.read(now, now-at))
	}
}

// read takes one reading.
func (w *watch) read(now, late int64) mark {
	m := mark{at: now, late: late}
	if w.queue == nil {
		return m
	}
	w.waits = w.queue.Sample(w.waits)
	for _, t := range w.waits {
		old := w.before[t.Thread]
		w.before[t.Thread] = t
		waited, times := t.Waited-old.Waited, t.Switches-old.Switches
		if t.Process == w.own {
			m.harness += waited
		} else {
			m.stores += waited
		}
		if waited > m.longest {
			m.longest, m.mean = waited, waited/max(times, 1)
		}
	}
	return m
}

// end stops reading.
func (w *watch) end() {
	if w.done == nil {
		return
	}
	w.stop.Store(true)
	<-w.done
	if w.queue != nil {
		_ = w.queue.Close() // files that were only read
	}
	w.goschedEnd, w.gcPausesEnd = goHistograms()
}

// explains returns the share of the moments with a latency of at least that length
// in which a thread waited for a core for long enough to be the reason, and not
// longer than the latency; -1 where that is not known. The reason for a latency is
// what explains at least half of its distance from the median.
func (w *watch) explains(s *slowest, epoch, least, median int64) float64 {
	if w.queue == nil || least <= 0 || len(w.marks) == 0 {
		return -1
	}
	moments, explained := 0, 0
	for i := range s.most {
		most := s.most[i].Load()
		if most < least {
			continue
		}
		moments++
		from := epoch + int64(i)*s.width
		if w.waited(from, from+s.width+most, (least-median)/2, most) {
			explained++
		}
	}
	if moments == 0 {
		return -1
	}
	return float64(explained) / float64(moments)
}

// waited reports whether a thread waited for at least that long between two moments,
// in waits that are not all longer than most.
func (w *watch) waited(from, to, least, most int64) bool {
	i := sort.Search(len(w.marks), func(i int) bool { return w.marks[i].at > from })
	var sum int64
	for ; i < len(w.marks); i++ {
		m := &w.marks[i]
		if m.mean <= most {
			sum += m.longest
		}
		if m.at >= to { // the reading that a wait until then shows in
			break
		}
	}
	return sum > 0 && sum >= least
}

// record condenses the readings.
func (w *watch) record(stolen float64) *results.Waiting {
	r := &results.Waiting{EveryNS: watchEvery, Known: w.queue != nil, Stolen: stolen, Slices: []results.WaitingSlice{}}
	r.HiccupP99, r.HiccupMax = w.hiccup.Quantile(0.99), w.hiccup.Max()
	r.GoSchedP99, r.GoSchedMax, _ = newValues(w.gosched, w.goschedEnd)
	_, r.GCPauseMax, r.GCPauses = newValues(w.gcPauses, w.gcPausesEnd)
	if len(w.marks) == 0 {
		return r
	}
	length := w.marks[len(w.marks)-1].at - w.epoch
	var harness, servers int64
	per := (len(w.marks) + mostSlices - 1) / mostSlices
	for i := 0; i < len(w.marks); i += per {
		from := w.epoch
		if i > 0 {
			from = w.marks[i-1].at
		}
		var slice results.WaitingSlice
		var h, s int64
		part := w.marks[i:min(i+per, len(w.marks))]
		for _, m := range part {
			h, s = h+m.harness, s+m.stores
			slice.LongestNS, slice.HiccupNS = max(slice.LongestNS, m.longest), max(slice.HiccupNS, m.late)
		}
		took := float64(max(part[len(part)-1].at-from, 1))
		slice.Harness, slice.Stores = float64(h)/took, float64(s)/took
		harness, servers = harness+h, servers+s
		r.Slices = append(r.Slices, slice)
	}
	r.Harness, r.Stores = float64(harness)/float64(max(length, 1)), float64(servers)/float64(max(length, 1))
	return r
}

// goHistograms reads how long goroutines were ready to run before they ran, and how
// long the garbage collector stopped all of them, since the program's start.
func goHistograms() (latencies, pauses *metrics.Float64Histogram) {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}, {Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	for i, into := range []**metrics.Float64Histogram{&latencies, &pauses} {
		if s[i].Value.Kind() == metrics.KindFloat64Histogram {
			h := s[i].Value.Float64Histogram()
			*into = &metrics.Float64Histogram{Counts: append([]uint64(nil), h.Counts...), Buckets: h.Buckets}
		}
	}
	return latencies, pauses
}

// newValues is the 99th percentile and the largest value, in nanoseconds and rounded up
// to the runtime's buckets, of what one reading has more than an earlier one, and how
// many values that are.
func newValues(earlier, later *metrics.Float64Histogram) (p99, most, n int64) {
	if earlier == nil || later == nil {
		return 0, 0, 0
	}
	counts := make([]int64, len(later.Counts))
	for i := range counts {
		counts[i] = int64(later.Counts[i] - earlier.Counts[i])
		n += counts[i]
	}
	upper := func(i int) int64 {
		u := later.Buckets[i+1]
		if math.IsInf(u, 1) {
			u = later.Buckets[i]
		}
		return int64(u * 1e9)
	}
	rest := n / 100 // above the percentile
	for i := len(counts) - 1; i >= 0; i-- {
		if counts[i] == 0 {
			continue
		}
		if most == 0 {
			most = upper(i)
		}
		if rest -= counts[i]; rest < 0 {
			return upper(i), most, n
		}
	}
	return 0, most, n
}
