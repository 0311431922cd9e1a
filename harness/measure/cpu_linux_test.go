package measure

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// threadCPU is what the calling thread has used of the processors.
func threadCPU() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The processor time is what another reading of the system says, taken just before and just
// after, and threads that are more than the cores wait for one.
func TestOwnProcessorTime(t *testing.T) {
	const each, tick = 60 * time.Millisecond, 20 * time.Millisecond
	self, err := process.NewProcess(int32(os.Getpid())) //nolint:gosec // a pid fits
	if err != nil {
		t.Fatal(err)
	}
	other := func() time.Duration {
		times, err := self.Times()
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration((times.User + times.System) * float64(time.Second))
	}
	threads := 3 * runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	outer := other()
	before := readOwnCPU()
	inner := other()
	var busy, read sync.WaitGroup
	read.Add(1)
	for range threads {
		busy.Add(1)
		go func() {
			runtime.LockOSThread() // it lives until its wait has been read
			for begun := threadCPU(); threadCPU()-begun < each; {
				runtime.KeepAlive(begun)
			}
			busy.Done()
			read.Wait()
		}()
	}
	busy.Wait()
	inner = other() - inner
	got := readOwnCPU().sub(before)
	outer = other() - outer
	read.Done()
	if got.used < inner-tick || got.used > outer+tick || got.used < time.Duration(threads)*each-tick {
		t.Errorf("used %v, another reading says %v to %v", got.used, inner, outer)
	}
	if got.waiting < each {
		t.Errorf("%d threads of %v each on %d cores waited %v", threads, each, runtime.NumCPU(), got.waiting)
	}
}
