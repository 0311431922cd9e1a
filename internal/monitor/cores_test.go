package monitor

import (
	"context"
	"math"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// ms is so many milliseconds in nanoseconds.
func ms(n float64) int64 { return int64(n * 1e6) }

// TestWaitingExplainsATail plants latencies and waits at known moments.
func TestWaitingExplainsATail(t *testing.T) {
	const epoch = int64(1_000_000_000)
	var tail []Moment
	for _, begin := range []float64{10, 110, 210, 310} {
		tail = append(tail, Moment{From: epoch + ms(begin), To: epoch + ms(begin+1), Latency: ms(4)})
	}
	at := func(when float64, longest, mean int64) mark {
		return mark{at: epoch + ms(when), longest: longest, mean: mean}
	}
	for _, c := range []struct {
		name  string
		marks []mark
		want  float64
	}{
		{"no waiting", []mark{at(15, 0, 0), at(400, 0, 0)}, 0},
		{"every tail has its wait", []mark{at(15, ms(3), ms(3)), at(115, ms(2), ms(1)), at(215, ms(2), ms(2)),
			at(315, ms(4), ms(4))}, 1},
		{"one in four", []mark{at(15, ms(3), ms(3)), at(115, 0, 0), at(215, 0, 0), at(315, 0, 0)}, 0.25},
		{"half of the excess is enough",
			[]mark{at(15, ms(1.5), ms(1.5)), at(115, ms(1.4), ms(1.4)), at(215, 0, 0), at(315, 0, 0)}, 0.25},
		{"waits at other times explain nothing",
			[]mark{at(5, ms(4), ms(4)), at(16, 0, 0), at(60, ms(4), ms(4)), at(116, 0, 0), at(160, ms(4), ms(4)), at(216, 0, 0),
				at(260, ms(4), ms(4)), at(316, 0, 0)}, 0},
		{"waits longer than the latency were not part of it",
			[]mark{at(15, ms(20), ms(20)), at(115, ms(20), ms(20)), at(215, 0, 0), at(315, 0, 0)}, 0},
		{"two readings add up", []mark{at(12, ms(1), ms(1)), at(14, ms(1), ms(1)), at(115, 0, 0), at(215, 0, 0),
			at(315, 0, 0)}, 0.25},
	} {
		w := &Cores{queue: &machine.RunQueue{}, marks: c.marks}
		// The median is 1 ms: half of the excess of 4 ms over it is 1.5 ms.
		if got := w.Explains(slices.Values(tail), ms(1.5)); got != c.want {
			t.Errorf("%s: a share of %g, want %g", c.name, got, c.want)
		}
	}
	w := &Cores{marks: []mark{at(15, ms(3), ms(3))}}
	if got := w.Explains(slices.Values(tail), ms(1.5)); got != -1 {
		t.Errorf("a system that does not tell explains %g", got)
	}
}

// TestCoresSeeThreadsThatWait: more busy threads than processors wait, and are seen
// to; while nothing runs, nothing waits that long.
func TestCoresSeeThreadsThatWait(t *testing.T) {
	var w *Cores
	// a busy machine reads less often
	for d := 200 * time.Millisecond; w == nil || len(w.marks) < 5 && d < 30*time.Second; d *= 2 {
		w = WatchCores(clock.Nano)
		if w.queue == nil {
			w.End()
			t.Skip("this system does not tell how long threads wait")
		}
		ctx, cancel := context.WithTimeout(t.Context(), d)
		burn(ctx, t)
		cancel()
		w.End()
	}
	r := w.Record(0.25)
	if !r.Known || r.EveryNS != coresEvery || r.Stolen != 0.25 || len(r.Slices) == 0 || len(r.Slices) > mostSlices {
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
		t.Errorf("threads that had to wait for each other waited %v at most, %.2f of them at a time", time.Duration(longest),
			r.Harness)
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

// TestCoresWaitWithoutAThread: between two readings the goroutine waits for a
// channel, so that it holds no thread. In a call of the system it would.
func TestCoresWaitWithoutAThread(t *testing.T) {
	defer WatchCores(clock.Nano).End()
	state := ""
	for end := clock.Nano() + int64(time.Minute); clock.Nano() < end; time.Sleep(time.Millisecond) {
		for _, g := range stacks.All() {
			if !strings.Contains(g.Text, "monitor.(*Cores).run") {
				continue
			}
			state = g.State
			if state == "chan receive" {
				return
			}
		}
	}
	t.Errorf("it never waits for a channel; in the end it was in %q", state)
}

// TestCoresLeaveTheOnlyThreadAlone runs next to a loop while one thread at a time may
// run Go code: it must not hold it while it waits for its next reading. Other
// programs take turns too: the test fails only if the median of 7 pairs is against it
// in every one of many attempts.
func TestCoresLeaveTheOnlyThreadAlone(t *testing.T) {
	testenv.Long(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	turns := func() (n float64) {
		for begin := clock.Nano(); clock.Nano() < begin+80_000_000; n++ {
			runtime.Gosched()
		}
		return n
	}
	watched := func() float64 {
		defer WatchCores(clock.Nano).End()
		return turns()
	}
	var share float64
	for range 40 {
		share = median(7, func() float64 {
			return watched() / turns()
		}, func() float64 { alone := turns(); return watched() / alone })
		if share >= 0.94 {
			return
		}
		t.Logf("next to it a loop gets %.0f %% of its turns", 100*share)
	}
	t.Errorf("next to it a loop never gets 94 %% of its turns, but %.0f %%", 100*share)
}

// median is that of n values, of which every second one is taken the other way round.
func median(n int, one, other func() float64) float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = one()
		if i%2 == 1 {
			values[i] = other()
		}
	}
	slices.Sort(values)
	return values[n/2]
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
