package measure

import (
	"time"

	"github.com/quotabench/quotabench/quota"

	"github.com/quotabench/quotabench/internal/clock"
)

// timebase is where a run's times come from: nanoseconds for measuring, and the
// clock that strategies are given. Both are views of one clock.
type timebase struct {
	nano  func() int64
	time  func(nano int64) time.Time
	clock quota.Clock
}

var wallTime = &timebase{nano: clock.Nano, time: clock.Time, clock: clock.Wall{}}
