package measure

import (
	"context"
	"math"
	"net"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/trouble"
)

// heldConn carries nothing while its instance stands still: what comes meanwhile waits.
type heldConn struct {
	net.Conn
	stand func()
}

func (c heldConn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	c.stand()
	return n, err
}

func (c heldConn) Write(data []byte) (int, error) {
	c.stand()
	return c.Conn.Write(data)
}

// stand waits if an instance is to stand still now.
func (s *site) stand(instance int) {
	for i := range s.pauses {
		event := &s.pauses[i]
		at, _ := event.When.Within(s.cfg.Duration)
		from := s.began.Load() + int64(at)
		left := from + int64(event.What.For) - s.timebase.nano()
		if event.Where.Has(instance) && s.began.Load() != 0 && left > 0 && left <= int64(event.What.For) {
			_ = s.timebase.clock.Sleep(context.Background(), time.Duration(left))
			s.paused.Most(s.timebase.nano() - from)
		}
	}
}

// skewed is the clock of an instance that shows a wrong time. Waiting is not affected by that.
type skewed struct {
	clock.Wall
	trouble.Clock
	site *site
}

// Now is what the instance takes for the time.
func (c skewed) Now() time.Time {
	now := c.site.timebase.clock.Now()
	if c.site.timebase.nano() >= c.site.wrongFrom(c.Clock) {
		now = now.Add(c.Ahead)
	}
	return now
}

// wrongFrom is when a clock begins to be ahead, by that of the run: none steps before the pass.
func (s *site) wrongFrom(c trouble.Clock) int64 {
	began := s.began.Load()
	switch {
	case c.From == 0:
		return math.MinInt64 / 2
	case began == 0:
		return math.MaxInt64
	}
	return began + int64(c.From)
}
