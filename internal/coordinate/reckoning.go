package coordinate

import (
	"time"

	"github.com/quotabench/quotabench/internal/generators"
)

// drift is how much two clocks drift apart at most, as one part in so many: 100 µs a second.
// Quartz keeps to half of that, and its correction by NTP is of that size.
const drift = 10_000

// reckoning is where a clock stands against the coordinator's, and where it stood.
type reckoning struct {
	now  generators.Clock // at the moment of
	last time.Time
	all  generators.Clock // at all moments so far
}

// add takes a reading at a moment.
func (r *reckoning) add(c generators.Clock, at time.Time) {
	if r.last.IsZero() {
		r.now, r.all, r.last = c, c, at
		return
	}
	r.now = r.at(at).Both(c)
	r.all, r.last = r.all.Spanning(r.now), at
}

// at is the bound at a later moment, for which the clocks may have drifted.
func (r *reckoning) at(t time.Time) generators.Clock {
	c := r.now
	c.ErrorNS += int64(max(0, t.Sub(r.last))) / drift
	return c
}

// until is the bound from the first reading to a moment after the last one.
func (r *reckoning) until(t time.Time) generators.Clock { return r.all.Spanning(r.at(t)) }
