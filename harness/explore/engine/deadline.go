package engine

import (
	"time"

	"github.com/quotabench/quotabench/quota"
)

// WindowEnd is when the window at t ends, or t itself where none ever does.
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

// Renewed is when at the latest all that was used at t is free again, or t itself
// where that never happens by itself.
func (s *Setup) Renewed(t time.Time) time.Time {
	if p := &s.Policy; p.Window.Kind == quota.Bucket {
		return t.Add(time.Duration(p.Window.Flow().Until(quota.Level{Units: p.Limit})))
	}
	return s.WindowEnd(t)
}
