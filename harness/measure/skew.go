package measure

import (
	"math"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/stops"
)

// skewed is the clock of an instance that shows a wrong time. Waiting is not affected by that.
type skewed struct {
	clock.Wall
	stops.Clock
	s *site
}

// Now is what the instance takes for the time.
func (c skewed) Now() time.Time {
	now := c.s.tb.clock.Now()
	if c.s.tb.nano() >= c.s.wrongFrom(c.Clock) {
		now = now.Add(c.Ahead)
	}
	return now
}

// wrongFrom is when a clock begins to be ahead, by that of the run: none steps before the pass.
func (s *site) wrongFrom(c stops.Clock) int64 {
	began := s.began.Load()
	switch {
	case c.From == 0:
		return math.MinInt64 / 2
	case began == 0:
		return math.MaxInt64
	}
	return began + int64(c.From)
}
