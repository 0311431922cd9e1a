package oracle

import "github.com/quotabench/quotabench/quota"

// Interval of units, both ends included.
type Interval struct {
	Lo, Hi int64
}

// Width is 0 where the value is known exactly.
func (i Interval) Width() int64 { return i.Hi - i.Lo }

// Distance is how far v lies outside of the interval: positive above it,
// negative below it, 0 inside.
func (i Interval) Distance(v int64) int64 {
	switch {
	case v > i.Hi:
		return v - i.Hi
	case v < i.Lo:
		return v - i.Lo
	default:
		return 0
	}
}

// Reading is the interval in which a counter was read, in nanoseconds since the
// run's epoch.
type Reading struct {
	Call, Reply int64
}

// Expected is [Expect] for a standing policy: the events are those of one
// subject in the window in force.
func Expected(events []Event, at Reading, counts quota.Counting, initial int64) (expected, surplus Interval, err error) {
	want, _, err := Expect(Config{Initial: func(uint32) int64 { return initial }}, 0, events, at, counts)
	return want.Units, want.Surplus, err
}
