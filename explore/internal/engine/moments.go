package engine

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Fractions reports whether time also moves to moments at which a part of a unit has
// flowed in, when everything is at rest.
func (s *Setup) Fractions() bool { return s.Policy.Window.Kind == quota.Bucket }

// KeysEndWindows reports whether windows end as keys do, which are still there in the millisecond of their deadline.
// A window of another kind is over at its end. If more than one unit fits, some of a window may be admitted in that
// millisecond, in which the next one has begun for who judges it.
func (s *Setup) KeysEndWindows() bool {
	return s.Learns || s.Policy.Window.Kind == quota.FirstRequest && s.Policy.Limit == 1
}

// Halves reports whether what comes after half of a window is for the policy to say. Where all that a window holds was
// given back, a limiter may have the next request begin another one.
func (s *Setup) Halves() bool {
	return s.Policy.Window.Kind != quota.FirstRequest || !slices.ContainsFunc(s.Scripts, func(script Script) bool {
		return slices.ContainsFunc(script, func(action Action) bool { return action.Kind == Refund })
	})
}

// WindowHalf is the moment halfway to the end of the window at t, and ok is false if
// none ends. Two halves are longer than a window that a key may keep open for a millisecond too long.
func (s *Setup) WindowHalf(t time.Time) (half time.Time, ok bool) {
	end := s.WindowEnd(t)
	half = t.Add(end.Sub(t) / 2)
	if s.Policy.Window.Kind == quota.FirstRequest {
		half = nextMillisecond(half)
	}
	return half, end.After(t)
}

// WindowBefore is the last whole millisecond before the window at t ends.
func (s *Setup) WindowBefore(t time.Time) time.Time {
	return s.WindowEnd(t).Add(-1).Truncate(time.Millisecond)
}

// A rest is a week, or so many windows if these take longer. It is no whole number of windows.
const (
	restTime    = 7 * 24 * time.Hour
	restWindows = 5
)

// Rested is the moment at which a rest that begins at t ends, or t itself if no window ever ends.
func (s *Setup) Rested(t time.Time) time.Time {
	length := s.Renewed(t).Sub(t)
	if length <= 0 {
		return t
	}
	rest := max(restTime, restWindows*length) + length/3
	return t.Add(rest.Truncate(time.Millisecond))
}

// nextMillisecond is the first whole millisecond after t.
func nextMillisecond(t time.Time) time.Time {
	return t.Truncate(time.Millisecond).Add(time.Millisecond)
}
