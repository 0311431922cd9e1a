package measure

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// spinNanos is the last stretch before a release that is spent spinning: it
// takes the wake-up's own delay out, for little processor time.
const spinNanos = 20_000

// pacer waits for moments precisely. It sleeps in the kernel on a locked thread
// whose timer slack is 1 ns, because time.Sleep is up to a millisecond late,
// which would be the largest part of most latencies measured here.
type pacer struct{ nano func() int64 }

func newPacer(nano func() int64) *pacer {
	runtime.LockOSThread()
	// A kernel that refuses leaves the default slack of 50 µs: the lateness shows it.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return &pacer{nano: nano}
}

// wait returns at the given moment of the pacer's clock, or at once if it has passed.
func (p *pacer) wait(at int64) {
	for {
		left := at - p.nano()
		if left <= 0 {
			return
		}
		if left > spinNanos {
			ts := unix.NsecToTimespec(left - spinNanos)
			// An early return, by a signal, goes round again.
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
		}
	}
}

func (p *pacer) close() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
	runtime.UnlockOSThread()
}
