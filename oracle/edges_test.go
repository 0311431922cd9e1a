package oracle

import (
	"slices"
	"testing"
)

// TestWorstOfWhatCrosses: units that could lie in either of two windows leak more
// in one of them than the average of both, rounded up.
func TestWorstOfWhatCrosses(t *testing.T) {
	const second = width - offset // first moment of the second window
	var events []Event
	for range 5 {
		events = append(events, Event{Call: second - 1, Reply: second, Units: 1})
	}
	if v := Judge(tumblingConfig(1, 0), events); v.LeakUnits != 3 || v.LeakWorst != 2 {
		t.Errorf("%d units leaked, %d in the worst window", v.LeakUnits, v.LeakWorst)
	}
}

// TestWindowsOfEqualLeaks: where looking at each window by itself finds as much
// leak as placing units into windows does, but elsewhere, it is shown where units
// could not be placed.
func TestWindowsOfEqualLeaks(t *testing.T) {
	const second, third = width - offset, 2*width - offset
	take := func(call, reply int64) Event { return Event{Call: call, Reply: reply, Units: 1} }
	v := Judge(tumblingConfig(1, 0), []Event{
		take(0, 1), take(second-1, second), take(second+1, second+2), // three in two windows
		take(third, third), take(third+1, third+1), // two at once in the third, where one is given back
		{Kind: Refund, Call: third + 2, Reply: third + 2, Units: 1, TakeCall: third, TakeReply: third},
	})
	var leaks []int64
	for _, w := range v.Windows {
		leaks = append(leaks, w.Leak)
	}
	if !slices.Equal(leaks, []int64{0, 1, 0}) || v.LeakUnits != 1 {
		t.Errorf("leaks of the windows: %v, in all %d", leaks, v.LeakUnits)
	}
}

// TestRequestsBeforeARollingWindow: a request that has just left a window is none
// of those that leaked in it, however late it was answered.
func TestRequestsBeforeARollingWindow(t *testing.T) {
	v := Judge(rollingConfig(1, 0), []Event{
		{Call: 4, Reply: 10, Units: 2}, {Call: 5, Reply: 6, Units: 1}, {Call: 5, Reply: 7, Units: 1}, {Call: 5, Reply: 10, Units: 1},
	})
	if v.LeakUnits != 2 || v.LeakedRequests != 2 {
		t.Errorf("%d units of %d requests leaked", v.LeakUnits, v.LeakedRequests)
	}
}

// TestOverrunOfWhatHasLeft: a commit at the moment at which its take leaves the
// window uses nothing in it.
func TestOverrunOfWhatHasLeft(t *testing.T) {
	for call, possible := range map[int64]int64{6: 3, 7: 1} {
		v := Judge(rollingConfig(1, 0), []Event{
			{Call: 1, Reply: 1, Units: 1}, {Kind: Commit, Call: call, Reply: call, Units: -3, TakeCall: 1, TakeReply: 1},
			{Call: 7, Reply: 7, Units: 1}, {Call: 7, Reply: 7, Units: 1},
		})
		if v.LeakUnits != 1 || v.LeakPossible != possible {
			t.Errorf("committed at %d: leak %d..%d, should be 1..%d", call, v.LeakUnits, v.LeakPossible, possible)
		}
	}
}
