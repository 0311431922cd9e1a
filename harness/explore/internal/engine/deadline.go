package engine

import (
	"time"

	"github.com/quotabench/quotabench/quota"
)

// WindowEnd is when the window at t ends, or t itself if none ever does.
func (s *Setup) WindowEnd(t time.Time) time.Time {
	win := s.Policy.Window
	switch {
	case win.Kind.Tumbling():
		return win.At(t).End
	case win.Kind == quota.Rolling, win.Kind == quota.FirstRequest:
		return t.Add(win.RealLength())
	case win.Kind == quota.Bucket:
		// Time for one unit more, by a server's clock, which tells whole microseconds.
		unit := time.Duration(win.Flow().Until(quota.Level{Units: 1}))
		return t.Add(unit + time.Microsecond - 1).Truncate(time.Microsecond)
	default:
		return t
	}
}

// Rounded is t if runs begin at a whole millisecond, and else the first moment from t on that is
// whole milliseconds after the beginning. Redis tells the deadlines of keys in milliseconds and cuts parts
// of one off: what is admitted in that part is the store's error, and no limiter's.
func (s *Setup) Rounded(t time.Time) time.Time {
	if s.From%time.Millisecond == 0 {
		return t
	}
	part := t.Sub(s.Begins()) % time.Millisecond
	if part > 0 {
		t = t.Add(time.Millisecond - part)
	}
	return t
}

// Renewed is when at the latest all that was used at t is free again, or t itself
// where that never happens by itself.
func (s *Setup) Renewed(t time.Time) time.Time {
	if p := &s.Policy; p.Window.Kind == quota.Bucket {
		return t.Add(time.Duration(p.Window.Flow().Until(quota.Level{Units: p.Limit})))
	}
	return s.WindowEnd(t)
}
