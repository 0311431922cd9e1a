package oracle

import (
	"math"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// span is one window in nanoseconds since the epoch, [start, end).
type span struct {
	index, start, end int64
}

// spans finds the windows of a tumbling policy. Finding one costs a few hundred
// nanoseconds of calendar arithmetic, and it is nearly always the one found last.
type spans struct {
	window quota.Window
	epoch  time.Time
	last   span
}

// at is the window of a moment.
func (s *spans) at(moment int64) span {
	if moment < s.last.start || moment >= s.last.end {
		s.last = s.convert(s.window.At(s.epoch.Add(time.Duration(moment))))
	}
	return s.last
}

// after is the window that follows another.
func (s *spans) after(window span) span {
	s.last = s.convert(s.window.Span(window.index + 1))
	return s.last
}

func (s *spans) convert(window quota.Span) span {
	return span{index: window.Index, start: s.offset(window.Start), end: s.offset(window.End)}
}

// offset is nanoseconds since the epoch. time.Time.Sub saturates 292 years from it; a
// quarter of that is kept, so that times can be doubled.
func (s *spans) offset(t time.Time) int64 {
	since := int64(t.Sub(s.epoch))
	return min(max(since, math.MinInt64/4), math.MaxInt64/4)
}
