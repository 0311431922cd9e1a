package quota

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Kind says how a policy's window moves.
type Kind uint8

const (
	// Standing has no window: units count from the moment they are admitted
	// until they are given back.
	Standing Kind = iota
	// CalendarMonth runs from the first of a month, 00:00 local time, to the next.
	CalendarMonth
	// CalendarDay runs from local midnight to local midnight (23 to 25 hours
	// when clocks change).
	CalendarDay
	// CalendarHour runs from one full local hour to the next.
	CalendarHour
	// Fixed windows of equal length follow each other from the Unix epoch.
	Fixed
	// Rolling looks back one length from every moment.
	Rolling
	// Bucket holds units that requests take out and that flow in again at an even
	// rate: the limit is its size, and it is full at the start.
	Bucket
	// FirstRequest windows are each subject's own: one begins with the first request
	// that is admitted while none is open, and lasts its length.
	FirstRequest
)

var kindNames = [...]string{"standing", "calendar-month", "calendar-day", "calendar-hour", "fixed", "rolling", "bucket",
	"first-request"}

// Kinds returns all kinds of windows.
func Kinds() []Kind {
	out := make([]Kind, len(kindNames))
	for i := range out {
		out[i] = Kind(i)
	}
	return out
}

// String returns the kind's public name, e.g. "calendar-month".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(data []byte) error {
	i := slices.Index(kindNames[:], string(data))
	if i < 0 {
		return fmt.Errorf("unknown window kind %q", data)
	}
	*k = Kind(i)
	return nil
}

// Tumbling reports whether windows of this kind follow each other without
// overlap: then every moment lies in exactly one of them.
func (k Kind) Tumbling() bool { return k >= CalendarMonth && k <= Fixed }

// HasLength reports whether windows of this kind have a length of their own.
func (k Kind) HasLength() bool { return k >= Fixed && k <= FirstRequest }

// Window is the stretch of time over which a policy's limit counts. The zero
// value is a standing quota.
type Window struct {
	Kind Kind
	// Length of a fixed, rolling or first-request window, in policy time; of a bucket,
	// the time in which Refill units flow in. Unused otherwise.
	Length time.Duration
	// Refill is how many units flow into a bucket per Length; unused otherwise.
	Refill int64
	// Location of calendar windows; nil means UTC.
	Location *time.Location
	// Timeline maps real time to the policy's time; the zero value is identity.
	Timeline Timeline
}

// Span is one window of a tumbling policy, [Start, End) in real time. For
// all others it is the zero value, which contains every moment.
type Span struct {
	// Index numbers windows in order; consecutive windows differ by one.
	Index      int64
	Start, End time.Time
}

// Contains reports whether t lies in the span.
func (s Span) Contains(t time.Time) bool {
	if s.End.IsZero() {
		return true
	}
	return !t.Before(s.Start) && t.Before(s.End)
}

// At returns the window that contains the moment t of real time.
func (w Window) At(t time.Time) Span {
	if !w.Kind.Tumbling() {
		return Span{}
	}
	span := w.Span(w.index(w.Timeline.ToPolicy(t)))
	// A scaled timeline rounds to nanoseconds, which can put a boundary one
	// step to either side of t; never more.
	if t.Before(span.Start) {
		return w.Span(span.Index - 1)
	}
	if !t.Before(span.End) {
		return w.Span(span.Index + 1)
	}
	return span
}

// Span returns the window with the given index.
func (w Window) Span(index int64) Span {
	if !w.Kind.Tumbling() {
		return Span{}
	}
	return Span{
		Index: index,
		Start: w.Timeline.ToReal(w.start(index)),
		End:   w.Timeline.ToReal(w.start(index + 1)),
	}
}

// RealLength is the length of a window that has one (see [Kind.HasLength]) in real
// time, after the timeline's speed.
func (w Window) RealLength() time.Duration { return w.Timeline.Scale(w.Length) }

// Label names a window as keys do: "2026-11", "2026-11-20", "2026-11-20T13", or
// the decimal index of a fixed window. All others have none.
func (w Window) Label(index int64) string {
	switch w.Kind {
	case CalendarMonth:
		y := floorDiv(index, 12)
		m := floorMod(index, 12)
		return fmt.Sprintf("%04d-%02d", y, m+1)
	case CalendarDay:
		return time.Unix(index*86400, 0).UTC().Format(time.DateOnly)
	case CalendarHour:
		return w.start(index).In(w.location()).Format("2006-01-02T15")
	case Fixed:
		return strconv.FormatInt(index, 10)
	default:
		return ""
	}
}

func (w Window) location() *time.Location {
	if w.Location == nil {
		return time.UTC
	}
	return w.Location
}

// index is the window that contains the policy moment t.
func (w Window) index(t time.Time) int64 {
	switch w.Kind {
	case CalendarMonth:
		l := t.In(w.location())
		return int64(l.Year())*12 + int64(l.Month()) - 1
	case CalendarDay:
		y, month, d := t.In(w.location()).Date()
		return time.Date(y, month, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	case CalendarHour:
		return floorDiv(t.Unix()+w.hourOffset(), 3600)
	case Fixed:
		n := t.Sub(time.Unix(0, 0)) // saturates 292 years from the epoch
		return floorDiv(int64(n), int64(w.Length))
	default:
		return 0
	}
}

// start is the first policy moment of a window.
func (w Window) start(index int64) time.Time {
	switch w.Kind {
	case CalendarMonth:
		return dayStart(int(floorDiv(index, 12)), time.Month(floorMod(index, 12)+1), 1, w.location())
	case CalendarDay:
		y, month, d := time.Unix(index*86400, 0).UTC().Date()
		return dayStart(y, month, d, w.location())
	case CalendarHour:
		return time.Unix(index*3600-w.hourOffset(), 0)
	case Fixed:
		return time.Unix(0, 0).Add(time.Duration(index) * w.Length)
	default:
		return time.Time{}
	}
}

// hourOffset is the part of an hour by which the zone's full hours differ from
// UTC's. It is fixed per zone, so hours never overlap: in the one zone
// whose summer time is half an hour (Lord Howe) hours follow standard time.
func (w Window) hourOffset() int64 {
	_, a := time.Date(2000, time.January, 1, 0, 0, 0, 0, w.location()).Zone()
	_, b := time.Date(2000, time.July, 1, 0, 0, 0, 0, w.location()).Zone()
	return floorMod(int64(min(a, b)), 3600)
}

// dayStart is the first moment of a local date. If summer time begins at
// midnight that is 01:00; if it ends at 01:00 it is the first of two 00:00.
// time.Date promises neither.
func dayStart(y int, month time.Month, d int, loc *time.Location) time.Time {
	noon := time.Date(y, month, d, 12, 0, 0, 0, loc)
	s := time.Date(y, month, d, 0, 0, 0, 0, loc)
	if s.Day() != noon.Day() { // midnight fell into the gap, and we are before it
		_, end := s.ZoneBounds()
		return end
	}
	zoneStart, _ := s.ZoneBounds()
	if zoneStart.IsZero() {
		return s
	}
	_, now := s.Zone()
	_, before := zoneStart.Add(-1).Zone()
	if before > now { // clocks were put back: midnight may have come once before
		if e := s.Add(-time.Duration(before-now) * time.Second); e.Before(zoneStart) && e.Day() == s.Day() && e.Hour() == 0 {
			return e
		}
	}
	return s
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// Memo remembers the window that it was asked for last, with its label:
// calendar arithmetic costs more than everything else that a caller does before
// its store is asked, and its answer hardly ever changes. The zero value is ready
// to use, also concurrently.
type Memo struct{ last atomic.Pointer[labelled] }

// labelled is a window's span and label. It is shared and must not be changed.
type labelled struct {
	Span
	Label string // as [Window.Label] has it

	window Window
}

// At returns the same as window.At(t), and the window's label.
func (m *Memo) At(window *Window, t time.Time) *labelled {
	if labelled := m.last.Load(); labelled != nil && labelled.window == *window && labelled.Contains(t) {
		return labelled
	}
	r := &labelled{Span: window.At(t), window: *window}
	r.Label = window.Label(r.Index)
	m.last.Store(r)
	return r
}

// Timeline maps real time to a policy's own time: the real moment Real is the
// policy's moment Policy, and from there the policy's time runs Speed times as
// fast. Moving the anchor crosses a month's end without touching any clock;
// a speed of k shrinks windows and everything derived from them by k. The zero
// value is identity. Moments more than 292 years of either time from the anchor
// are not told apart.
type Timeline struct {
	Real, Policy time.Time
	// Speed is policy seconds per real second; 0 means 1.
	Speed float64
}

// ToPolicy converts a real moment.
func (l Timeline) ToPolicy(real time.Time) time.Time {
	if l.Real.IsZero() {
		return real
	}
	duration := real.Sub(l.Real)
	if l.scaled() {
		duration = rounded(float64(duration) * l.Speed)
	}
	return l.Policy.Add(duration)
}

// ToReal converts a policy moment. With a speed other than 1 it is exact to the
// nanosecond only near the anchor.
func (l Timeline) ToReal(policy time.Time) time.Time {
	if l.Real.IsZero() {
		return policy
	}
	duration := policy.Sub(l.Policy)
	if l.scaled() {
		duration = rounded(float64(duration) / l.Speed)
	}
	return l.Real.Add(duration)
}

// Scale converts a length of policy time to real time.
func (l Timeline) Scale(duration time.Duration) time.Duration {
	if !l.scaled() {
		return duration
	}
	return rounded(float64(duration) / l.Speed)
}

// rounded saturates at 292 years, like time.Time.Sub.
func rounded(ns float64) time.Duration {
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	default:
		return time.Duration(math.Round(ns))
	}
}

func (l Timeline) scaled() bool { return l.Speed != 0 && l.Speed != 1 }
