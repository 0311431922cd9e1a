//go:build !linux

package measure

import (
	"runtime"
	"time"
)

// spinNanos is how much earlier than a release the sleep ends: time.Sleep is
// late by up to a millisecond on some systems.
const spinNanos = 200_000

// pacer waits for moments: asleep for most of the time, then yielding until the
// moment comes.
type pacer struct{ nano func() int64 }

func newPacer(nano func() int64, _ float64) *pacer { return &pacer{nano: nano} }

// wait returns at the given moment of the pacer's clock, or at once if it has passed.
func (p *pacer) wait(at int64) {
	for {
		left := at - p.nano()
		switch {
		case left <= 0:
			return
		case left > spinNanos:
			time.Sleep(time.Duration(left - spinNanos))
		default:
			runtime.Gosched()
		}
	}
}

func (p *pacer) close() {}
