package measure

import (
	"context"
	"math"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/machine"
	"github.com/quotabench/quotabench/internal/stacks"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/results"
)

// ms is so many milliseconds in nanoseconds.
func ms(n float64) int64 { return int64(n * 1e6) }

// TestWaitingExplainsATail plants latencies and waits at known moments.
func TestWaitingExplainsATail(t *testing.T) {
	const epoch = int64(1_000_000_000)
	latencies := map[int64]int64{ms(10): ms(4), ms(110): ms(4), ms(210): ms(4), ms(310): ms(4)} // by when they began
	at := func(when float64, longest, mean int64) mark {
		return mark{at: epoch + ms(when), longest: longest, mean: mean}
	}
	for _, c := range []struct {
		name  string
		marks []mark
		want  float64
	}{
		{"no waiting", []mark{at(15, 0, 0), at(400, 0, 0)}, 0},
		{"every tail has its wait", []mark{at(15, ms(3), ms(3)), at(115, ms(2), ms(1)), at(215, ms(2), ms(2)), at(315, ms(4), ms(4))}, 1},
		{"one in four", []mark{at(15, ms(3), ms(3)), at(115, 0, 0), at(215, 0, 0), at(315, 0, 0)}, 0.25},
		{"half of the excess is enough", []mark{at(15, ms(1.5), ms(1.5)), at(115, ms(1.4), ms(1.4)), at(215, 0, 0), at(315, 0, 0)}, 0.25},
		{"waits at other times explain nothing", []mark{at(5, ms(4), ms(4)), at(16, 0, 0), at(60, ms(4), ms(4)), at(116, 0, 0), at(160, ms(4), ms(4)), at(216, 0, 0), at(260, ms(4), ms(4)), at(316, 0, 0)}, 0},
		{"waits longer than the latency were not part of it", []mark{at(15, ms(20), ms(20)), at(115, ms(20), ms(20)), at(215, 0, 0), at(315, 0, 0)}, 0},
		{"two readings add up", []mark{at(12, ms(1), ms(1)), at(14, ms(1), ms(1)), at(115, 0, 0), at(215, 0, 0), at(315, 0, 0)}, 0.25},
	} {
		s := newSlowest(ms(400))
		for due, took := range latencies {
			s.record(due, took)
		}
		s.record(ms(350), ms(1)) // no part of the tail
		w := &watch{queue: &machine.RunQueue{}, marks: c.marks}
		// The median is 1 ms: half of the excess of 4 ms over it is 1.5 ms.
		if got := w.explains(s, epoch, ms(4), ms(1)); got != c.want {
			t.Errorf("%s: a share of %g, want %g", c.name, got, c.want)
		}
	}
	w := &watch{marks: []mark{at(15, ms(3), ms(3))}}
	if got := w.explains(newSlowest(ms(400)), epoch, ms(4), ms(1)); got != -1 {
		t.Errorf("a system that does not tell explains %g", got)
	}
}

// TestWatchSeesThreadsThatWait: more busy threads than processors wait, and are seen
// to; while nothing runs, nothing waits that long.
func TestWatchSeesThreadsThatWait(t *testing.T) {
	w := longer(t, 200*time.Millisecond, func(d time.Duration) *watch {
		w := newWatch(t.Context(), wallTime, nil)
		defer w.end()
		if w.queue == nil {
			t.Skip("this system does not tell how long threads wait")
		}
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		burn(ctx, t)
		return w
	}, func(w *watch) bool { return len(w.marks) >= 5 })
	r := w.record(0.25)
	if !r.Known || r.EveryNS != watchEvery || r.Stolen != 0.25 || len(r.Slices) == 0 || len(r.Slices) > mostSlices {
		t.Fatalf("%+v", r)
	}
	if len(w.marks) < 5 {
		t.Fatalf("%d readings", len(w.marks))
	}
	if r.HiccupMax < r.HiccupP99 || r.HiccupMax <= 0 {
		t.Errorf("late by %d at most, by %d at p99", r.HiccupMax, r.HiccupP99)
	}
	var longest int64
	for _, s := range r.Slices {
		longest = max(longest, s.LongestNS)
	}
	if longest < ms(1) || r.Harness < 0.2 {
		t.Errorf("threads that had to wait for each other waited %v at most, %.2f of them at a time", time.Duration(longest), r.Harness)
	}
}

// burn keeps more threads busy than there are processors, until ctx ends.
func burn(ctx context.Context, t *testing.T) {
	t.Helper()
	cmds := make([]*exec.Cmd, runtime.NumCPU())
	for i := range cmds {
		cmds[i] = exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_ = n
			}
		})
	}
	wg.Wait()
	for _, c := range cmds {
		_ = c.Wait() // killed
	}
}

// TestWatchWaitsWithoutAThread: between two readings the watch's goroutine waits for a
// channel, so that it holds no thread. In a call of the system it would.
func TestWatchWaitsWithoutAThread(t *testing.T) {
	w := newWatch(t.Context(), wallTime, nil)
	defer w.end()
	state := ""
	for end := wallTime.nano() + int64(time.Minute); wallTime.nano() < end; time.Sleep(time.Millisecond) {
		for _, g := range stacks.All() {
			if !strings.Contains(g.Text, "measure.(*watch).run") {
				continue
			}
			if state = g.State; state == "chan receive" {
				return
			}
		}
	}
	t.Errorf("the watch never waits for a channel; in the end it was in %q", state)
}

// TestWatchLeavesTheOnlyThreadAlone runs beside a loop where one thread at a time may
// run Go code: the watch must not hold it while it waits for its next reading. Other
// programs take turns too: the watch fails only where the median of 7 pairs is against it
// in every one of many attempts.
func TestWatchLeavesTheOnlyThreadAlone(t *testing.T) {
	testenv.Long(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	turns := func() (n float64) {
		for begin := wallTime.nano(); wallTime.nano() < begin+80_000_000; n++ {
			runtime.Gosched()
		}
		return n
	}
	watched := func() float64 {
		defer newWatch(t.Context(), wallTime, nil).end()
		return turns()
	}
	var share float64
	for range 40 {
		if share = pairs(7, watched, turns); share >= 0.94 {
			return
		}
		t.Logf("beside the watch a loop gets %.0f %% of its turns", 100*share)
	}
	t.Errorf("beside the watch a loop never gets 94 %% of its turns, but %.0f %%", 100*share)
}

func TestBetweenHistograms(t *testing.T) {
	buckets := []float64{0, 1e-6, 1e-3, 1, math.Inf(1)}
	h := func(counts ...uint64) *metrics.Float64Histogram {
		return &metrics.Float64Histogram{Counts: counts, Buckets: buckets}
	}
	for _, c := range []struct {
		earlier, later *metrics.Float64Histogram
		p99, most, n   int64
	}{
		{h(0, 0, 0, 0), h(99, 1, 0, 0), 1_000, 1_000_000, 100},
		{h(0, 0, 0, 0), h(98, 2, 0, 0), 1_000_000, 1_000_000, 100},
		{h(50, 7, 0, 0), h(50, 7, 3, 0), 1_000_000_000, 1_000_000_000, 3},
		{h(0, 0, 0, 0), h(0, 0, 0, 1), 1_000_000_000, 1_000_000_000, 1},
		{h(1, 0, 0, 0), h(1, 0, 0, 0), 0, 0, 0},
		{nil, h(1, 0, 0, 0), 0, 0, 0},
	} {
		if p99, most, n := newValues(c.earlier, c.later); p99 != c.p99 || most != c.most || n != c.n {
			t.Errorf("%v to %v: p99 %d, most %d, of %d", c.earlier, c.later, p99, most, n)
		}
	}
}

// TestPercentilesAreMarked: the finding names the percentiles and the loop's kind of time,
// and takes nothing back.
func TestPercentilesAreMarked(t *testing.T) {
	p := auditPass()
	p.d.epoch = 0
	p.watch = &watch{queue: &machine.RunQueue{}, hiccup: results.NewHistogram(), marks: []mark{{at: ms(15), longest: ms(3), mean: ms(3)}}}
	l := results.Latency{Distribution: results.Distribution{P50: ms(1), P90: ms(1), P99: ms(4), P999: ms(5), P9999: ms(5)}}
	s := newSlowest(ms(100))
	s.record(ms(10), ms(5))
	s.record(ms(60), ms(2))
	p.tails().look(&l, s, "response")
	if w := l.Waited; w.P99 != 1 || w.P999 != 1 || w.P9999 != 1 || w.P90 != 0.5 {
		t.Errorf("%+v", w)
	}
	requireStrike(t, p.run, "waited-for-core", results.StrikesNote)
	if a := p.run.Audit; !a.Valid || !a.TimingsValid || !a.ResponseValid() {
		t.Errorf("something is taken back: %+v", a)
	}
}
