package measure

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// The last stretch before a release is spent spinning: it takes the wake-up's own
// delay out. That is 20 to 50 µs on machines without cores to spare. The share of a
// core that spinning may take bounds it if releases are close to each other.
const (
	leastSpin = int64(20_000)
	mostSpin  = int64(50_000)
	spinShare = 0.2
)

// spinFor is that stretch, in nanoseconds, at a rate per second; 0 is unknown.
func spinFor(perSecond float64) int64 {
	if perSecond <= 0 {
		return leastSpin
	}
	return min(max(int64(spinShare/perSecond*1e9), leastSpin), mostSpin)
}

// pacer waits for moments precisely. It sleeps in the kernel on a locked thread
// whose timer slack is 1 ns, because time.Sleep is up to a millisecond late,
// which would be the largest part of most latencies measured here.
type pacer struct {
	nano func() int64
	spin int64
}

// newPacer makes a pacer for a rate per second; 0 if it is not known.
func newPacer(nano func() int64, perSecond float64) *pacer {
	runtime.LockOSThread()
	// A kernel that refuses leaves the default slack of 50 µs: the lateness shows it.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return &pacer{nano, spinFor(perSecond)}
}

// wait returns at the given moment of the pacer's clock, or at once if it has passed.
func (p *pacer) wait(at int64) {
	for {
		left := at - p.nano()
		if left <= 0 {
			return
		}
		if left > p.spin {
			timespec := unix.NsecToTimespec(left - p.spin)
			// An early return, by a signal, goes round again.
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &timespec, nil)
		}
	}
}

func (p *pacer) close() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
	runtime.UnlockOSThread()
}
