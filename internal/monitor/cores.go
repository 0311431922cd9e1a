package monitor

import (
	"iter"
	"math"
	"os"
	"runtime/metrics"
	"sort"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/results"
)

// coresEvery is the distance in nanoseconds between two readings.
const coresEvery = int64(5 * time.Millisecond)

// mostSlices is how many slices of a pass a result keeps.
const mostSlices = 20

// Cores reads at short intervals of a pass how long threads of this program, and of
// the servers that were started for it, were ready to run and had no core. It also
// notices how late it is itself: a program that nothing disturbs is punctual.
type Cores struct {
	now   func() int64
	queue *machine.RunQueue // nil if the system does not tell
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

// WatchCores begins to read, by a clock in nanoseconds; End ends it. Servers are the processes that were started for
// the run.
func WatchCores(now func() int64, servers ...int) *Cores {
	cores := &Cores{now: now, own: os.Getpid(), before: map[int]machine.Wait{}, hiccup: results.NewHistogram(),
		done: make(chan struct{})}
	// A system that does not tell leaves the hiccups.
	if queue, err := machine.NewRunQueue(now, append([]int{cores.own}, servers...)...); err == nil {
		cores.queue = queue
		cores.waits = queue.Sample(cores.waits)
		for _, wait := range cores.waits {
			cores.before[wait.Thread] = wait
		}
	}
	cores.gosched, cores.gcPauses = goHistograms()
	cores.epoch = now()
	go cores.run()
	return cores
}

// NoCores are not watched: threads wait by the wall clock, and a run by another one has nothing to read.
func NoCores() *Cores { return &Cores{hiccup: results.NewHistogram()} }

// run reads until End is called.
func (c *Cores) run() {
	defer close(c.done)
	// A pacer would keep one of Go's threads from running anything while it sleeps.
	timer := time.NewTimer(0)
	defer timer.Stop()
	for at := c.epoch + coresEvery; !c.stop.Load(); at = max(at+coresEvery, c.now()) {
		timer.Reset(time.Duration(at - c.now()))
		<-timer.C
		now := c.now()
		c.hiccup.Record(now - at)
		c.marks = append(c.marks, c.read(now, now-at))
	}
}

// read takes one reading.
func (c *Cores) read(now, late int64) mark {
	m := mark{at: now, late: late}
	if c.queue == nil {
		return m
	}
	c.waits = c.queue.Sample(c.waits)
	for _, wait := range c.waits {
		old := c.before[wait.Thread]
		c.before[wait.Thread] = wait
		waited := wait.Waited - old.Waited
		times := wait.Switches - old.Switches
		if wait.Process == c.own {
			m.harness += waited
		} else {
			m.stores += waited
		}
		if waited > m.longest {
			m.longest = waited
			m.mean = waited / max(times, 1)
		}
	}
	return m
}

// End stops reading.
func (c *Cores) End() {
	if c.done == nil {
		return
	}
	c.stop.Store(true)
	<-c.done
	if c.queue != nil {
		_ = c.queue.Close() // files that were only read
	}
	c.goschedEnd, c.gcPausesEnd = goHistograms()
}

// Moment is a stretch of the run, by its clock, and the longest latency of a request that began in it.
type Moment struct{ From, To, Latency int64 }

// Explains returns the share of the moments in which a thread waited for a core for at least that many nanoseconds, and
// not longer than the latency; -1 if that is not known.
func (c *Cores) Explains(all iter.Seq[Moment], least int64) float64 {
	if c.queue == nil || len(c.marks) == 0 {
		return -1
	}
	moments := 0
	explained := 0
	for moment := range all {
		moments++
		if c.waited(moment.From, moment.To+moment.Latency, least, moment.Latency) {
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
func (c *Cores) waited(from, to, least, most int64) bool {
	i := sort.Search(len(c.marks), func(i int) bool { return c.marks[i].at > from })
	var sum int64
	for ; i < len(c.marks); i++ {
		mark := &c.marks[i]
		if mark.mean <= most {
			sum += mark.longest
		}
		if mark.at >= to { // the reading that a wait until then shows in
			break
		}
	}
	return sum > 0 && sum >= least
}

// Record condenses the readings. Stolen is the share of the processor time that other machines of the host took.
func (c *Cores) Record(stolen float64) *results.Waiting {
	waiting := &results.Waiting{EveryNS: coresEvery, Known: c.queue != nil, Stolen: stolen,
		Slices: []results.WaitingSlice{}}
	waiting.HiccupP99, waiting.HiccupMax = c.hiccup.Quantile(0.99), c.hiccup.Max()
	waiting.GoSchedP99, waiting.GoSchedMax, _ = newValues(c.gosched, c.goschedEnd)
	_, waiting.GCPauseMax, waiting.GCPauses = newValues(c.gcPauses, c.gcPausesEnd)
	if len(c.marks) == 0 {
		return waiting
	}
	length := c.marks[len(c.marks)-1].at - c.epoch
	var harness, servers int64
	per := (len(c.marks) + mostSlices - 1) / mostSlices
	for i := 0; i < len(c.marks); i += per {
		from := c.epoch
		if i > 0 {
			from = c.marks[i-1].at
		}
		var slice results.WaitingSlice
		var h, s int64
		part := c.marks[i:min(i+per, len(c.marks))]
		for _, mark := range part {
			h = h + mark.harness
			s = s + mark.stores
			slice.LongestNS = max(slice.LongestNS, mark.longest)
			slice.HiccupNS = max(slice.HiccupNS, mark.late)
		}
		took := float64(max(part[len(part)-1].at-from, 1))
		slice.Harness = float64(h) / took
		slice.Stores = float64(s) / took
		harness = harness + h
		servers = servers + s
		waiting.Slices = append(waiting.Slices, slice)
	}
	waiting.Harness = float64(harness) / float64(max(length, 1))
	waiting.Stores = float64(servers) / float64(max(length, 1))
	return waiting
}

// goHistograms reads how long goroutines were ready to run before they ran, and how
// long the garbage collector stopped all of them, since the program's start.
func goHistograms() (latencies, pauses *metrics.Float64Histogram) {
	samples := []metrics.Sample{{Name: "/sched/latencies:seconds"}, {Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(samples)
	for i, into := range []**metrics.Float64Histogram{&latencies, &pauses} {
		if samples[i].Value.Kind() == metrics.KindFloat64Histogram {
			histogram := samples[i].Value.Float64Histogram()
			*into = &metrics.Float64Histogram{Counts: append([]uint64(nil), histogram.Counts...), Buckets: histogram.Buckets}
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
		rest -= counts[i]
		if rest < 0 {
			return upper(i), most, n
		}
	}
	return 0, most, n
}
