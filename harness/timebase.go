package harness

import (
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/strategies"
)

// timebase is where a run's times come from: nanoseconds for measuring, and the
// clock that strategies are given. Both are views of one clock.
type timebase struct {
	nano  func() int64
	time  func(nano int64) time.Time
	clock strategies.Clock
}

var wallTime = &timebase{nano: clock.Nano, time: clock.Time, clock: clock.Wall{}}
