package sched

import (
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Age returns a function for [Scheduler.OnSync] that makes m live on virtual
// time, its own clock being ahead of it by skew. miniredis ages no keys by
// itself, and keeps the moment it reports apart from the time its keys have
// left; both are moved together, and only when somebody is about to look,
// because every move costs time in proportion to the keys that can expire.
func Age(m *miniredis.Miniredis, start time.Time, skew time.Duration) func(now time.Time) {
	last := start
	m.SetTime(start.Add(skew))
	return func(now time.Time) {
		d := now.Sub(last)
		if d <= 0 {
			return
		}
		last = now
		m.SetTime(now.Add(skew))
		m.FastForward(d)
	}
}
