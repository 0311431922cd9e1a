package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/stops"
)

// heldConn carries nothing while its instance stands still: what comes meanwhile waits.
type heldConn struct {
	net.Conn
	stand func()
}

func (c heldConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.stand()
	return n, err
}

func (c heldConn) Write(b []byte) (int, error) {
	c.stand()
	return c.Conn.Write(b)
}

// stand waits if an instance is to stand still now.
func (s *site) stand(instance int) {
	for _, x := range s.pauses {
		from := s.began.Load() + int64(x.At)
		left := from + int64(x.Pause) - s.tb.nano()
		if x.Of(instance) && s.began.Load() != 0 && left > 0 && left <= int64(x.Pause) {
			_ = s.tb.clock.Sleep(context.Background(), time.Duration(left))
			s.paused.Most(s.tb.nano() - from)
		}
	}
}

// checkPauses reports the first pause, or clock, that no run of these instances can have.
func (c *Config) checkPauses() error {
	all, err := stops.Plan(c.Pauses, nil, c.Duration, c.Instances)
	for _, x := range all {
		if x.Pause >= c.DecisionTimeout {
			return fmt.Errorf("a pause of %v: decisions are given up after %v, so give a longer --decision-timeout", x.Pause, c.DecisionTimeout)
		}
	}
	if len(c.Skew) > 0 && len(c.LimitChanges) > 0 {
		return errors.New("a limit that changes is judged by one clock: leave out the skew, or the change of the limit")
	}
	_, wrong := stops.Clocks(c.Skew, c.Duration, c.Instances)
	return cmp.Or(format.Wrapf(err, "--pause"), format.Wrapf(wrong, "--skew"))
}

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
