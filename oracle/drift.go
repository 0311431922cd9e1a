package oracle

import (
	"fmt"
	"github.com/quotabench/quotabench/quota"
	"math"
)

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

// Expected is what a counter must contain when it is read, if it lost nothing
// and invented nothing: expected for the number read, and in it surplus for the
// units that are there by the way of counting alone, such as rejected attempts.
// Drift is the distance of the number read to expected.
//
// The events are those of one subject in the window in force. Whatever overlaps
// the reading widens the interval, and so does a failed call or a rejection
// without the store, forever: its effect can come later than its error. A counter that counts nothing is never
// wrong. The only error is an unknown way of counting.
func Expected(events []Event, at Reading, counts quota.Counting, initial int64) (expected, surplus Interval, err error) {
	attempts := false
	switch counts {
	case quota.CountsAdmitted:
	case quota.CountsAttempts:
		attempts = true
	case quota.CountsNothing:
		return Interval{math.MinInt64 / 4, math.MaxInt64 / 4}, Interval{}, nil
	default:
		return expected, surplus, fmt.Errorf("no rule for what a counter of %q must contain", counts)
	}
	expected = Interval{initial, initial}
	for i := range events {
		e := &events[i]
		begun, over := e.Call <= at.Reply, e.Reply < at.Call
		if !begun {
			continue
		}
		switch {
		case e.Kind != Take:
			expected.give(e, over)
		case e.Outcome == Admitted:
			expected.add(e.Units, over)
		case e.Outcome == Failed:
			expected.Hi += e.Units
		case attempts:
			seen := over && e.Outcome == Rejected
			expected.add(e.Units, seen)
			surplus.add(e.Units, seen)
		case e.Outcome == RejectedDegraded:
			expected.Hi += e.Units
		case !over: // may be counted for a moment, until it is taken back
			expected.Hi += e.Units
		}
	}
	return expected, surplus, nil
}

// add units that may be there, and must be if certain.
func (i *Interval) add(units int64, certain bool) {
	i.Hi += units
	if certain {
		i.Lo += units
	}
}

// give takes account of a refund, commit or expiry that has been called.
func (i *Interval) give(e *Event, over bool) {
	certain := over && e.Outcome == Admitted
	if e.Units < 0 {
		i.add(-e.Units, certain)
		return
	}
	i.Lo -= e.Units
	if certain {
		i.Hi -= e.Units
	}
}
