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
// nanoseconds of calendar arithmetic, and the one asked for is nearly always the
// one found last.
type spans struct {
	window quota.Window
	epoch  time.Time
	last   span
}

func (s *spans) at(t int64) span {
	if t < s.last.start || t >= s.last.end {
		s.last = s.convert(s.window.At(s.epoch.Add(time.Duration(t))))
	}
	return s.last
}

func (s *spans) after(w span) span {
	s.last = s.convert(s.window.Span(w.index + 1))
	return s.last
}

func (s *spans) convert(w quota.Span) span {
	return span{index: w.Index, start: s.offset(w.Start), end: s.offset(w.End)}
}

// offset saturates 292 years from the epoch, as time.Time.Sub does; a quarter
// of that is kept, so that times can be doubled.
func (s *spans) offset(t time.Time) int64 {
	return min(max(int64(t.Sub(s.epoch)), math.MinInt64/4), math.MaxInt64/4)
}
