package machine

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func newRunQueue(t testing.TB, nano func() int64, pids ...int) *RunQueue {
	t.Helper()
	q, err := NewRunQueue(nano, pids...)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// ofThread returns what a sample says about a thread.
func ofThread(waits []Wait, tid int) (w Wait, ok bool) {
	i := slices.IndexFunc(waits, func(w Wait) bool { return w.Thread == tid })
	if i < 0 {
		return w, false
	}
	return waits[i], true
}

// TestPlantedWaiting has two threads on one core that are always ready to run. What a
// hypervisor steals of the core counts neither as running nor as waiting. It measures
// until the moments of both readings are known well enough.
func TestPlantedWaiting(t *testing.T) {
	allowed, ok := cores.Allowed()
	if !ok {
		t.Skip("needs a core that can be chosen")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // Go itself lets none of the three threads wait
	var mask unix.CPUSet
	mask.Set(allowed[0])
	var stop atomic.Bool
	var busy sync.WaitGroup
	tids := make(chan int, 2)
	refused := make(chan error, 2)
	for range 2 {
		busy.Go(func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			refused <- unix.SchedSetaffinity(0, &mask)
			tids <- unix.Gettid()
			for !stop.Load() {
			}
		})
	}
	defer func() { stop.Store(true); busy.Wait() }()
	a := <-tids
	b := <-tids
	for range 2 {
		if err := <-refused; err != nil {
			t.Skip(err)
		}
	}
	q := newRunQueue(t, clock.Nano, os.Getpid())
	// A wait counts when it has ended: both readings are taken after one.
	var waits []Wait
	// vague is how long before now the wait may have ended.
	switched := func(tid int) (w Wait, now, vague int64) {
		last := clock.Nano()
		waits = q.Sample(waits)
		old, ok := ofThread(waits, tid)
		for ok {
			begun := clock.Nano()
			waits = q.Sample(waits)
			now = clock.Nano()
			w, ok = ofThread(waits, tid)
			if w.Switches > old.Switches {
				return w, now, now - last
			}
			last = begun
		}
		t.Fatalf("thread %d is missing", tid)
		return w, now, 0
	}
	// Interrupts are in neither figure, so a stretch with many of them says nothing.
	adds := func(tid int) bool {
		cpu := ReadCPU()
		w0, begin, before := switched(tid)
		w1, now, after := switched(tid)
		for now < begin+max(200_000_000, 20*(before+after)) {
			w1, now, after = switched(tid)
		}
		elapsed := float64(now - begin)
		stolen := 1e9 * ReadCPU().Sub(cpu).Stolen / elapsed // of all cores
		ran := float64(w1.Ran-w0.Ran) / elapsed
		waited := float64(w1.Waited-w0.Waited) / elapsed
		t.Logf("thread %d: from %+v to %+v in %.0f ns: ran %.0f %%, waited %.0f %%, %.0f %% stolen", tid, w0, w1, elapsed,
			100*ran, 100*waited, 100*stolen)
		return waited+stolen >= 0.2 && ran+waited+stolen >= 0.85 && ran+waited <= 1.1 && w1.Process == os.Getpid()
	}
	for _, tid := range []int{a, b} {
		tries := 50
		for !adds(tid) {
			tries--
			if tries == 0 {
				t.Fatal("what a thread ran and waited never adds up to the time that passed")
			}
		}
	}
}

// TestRunQueueFollowsProcesses sees a child and its child come and go.
func TestRunQueueFollowsProcesses(t *testing.T) {
	now := int64(0)
	q := newRunQueue(t, func() int64 { return now }, os.Getpid())
	child := exec.Command("sh", "-c", "sleep 60 & echo $!; wait")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var line [32]byte
	n, err := out.Read(line[:])
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := strconv.Atoi(string(line[:n-1]))
	if err != nil {
		t.Fatal(err)
	}
	both := func() (there int) {
		for _, w := range q.Sample(nil) {
			if w.Thread == child.Process.Pid || w.Thread == grandchild {
				there++
			}
		}
		return there
	}
	if n := both(); n != 0 {
		t.Errorf("%d of two processes are seen before it is time to look for them", n)
	}
	for range refreshProcesses {
		now += refreshThreads
		q.Sample(nil)
	}
	if n := both(); n != 2 {
		t.Errorf("%d of two processes are seen", n)
	}
	if err := unix.Kill(grandchild, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := child.Wait(); err != nil {
		t.Logf("the shell: %v", err)
	}
	if n := both(); n != 0 {
		t.Errorf("%d of two processes that have ended are still there", n)
	}
}

func TestParseWait(t *testing.T) {
	for line, want := range map[string]Wait{
		"12 345 6\n": {Ran: 12, Waited: 345, Switches: 6},
		"0 0 0\n":    {},
	} {
		var w Wait
		if !w.parse([]byte(line)) || w != want {
			t.Errorf("%q gives %+v", line, w)
		}
	}
	for _, line := range []string{"", "\n", "1 2\n", "1 2 3", "1 2 3 4\n", "1  3\n", "-1 2 3\n", "a b c\n"} {
		var w Wait
		if w.parse([]byte(line)) {
			t.Errorf("%q is taken as %+v", line, w)
		}
	}
}

func TestSamplesAllocateNothing(t *testing.T) {
	q := newRunQueue(t, func() int64 { return 0 }, os.Getpid())
	dst := q.Sample(nil)
	if n := testing.AllocsPerRun(100, func() { dst = q.Sample(dst) }); n != 0 {
		t.Errorf("%v allocations per sample", n)
	}
}
