package oracle

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
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

// TestWindowsOfEqualLeaks: if looking at each window by itself finds as much
// leak as placing units into windows does, but in other windows, it is shown if
// units could not be placed.
func TestWindowsOfEqualLeaks(t *testing.T) {
	const second, third = width - offset, 2*width - offset
	take := func(call, reply int64) Event { return Event{Call: call, Reply: reply, Units: 1} }
	v := Judge(tumblingConfig(1, 0), []Event{
		take(0, 1), take(second-1, second), take(second+1, second+2), // three in two windows
		take(third, third), take(third+1, third+1), // two at once in the third, if one is given back
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
		{Call: 4, Reply: 10, Units: 2}, {Call: 5, Reply: 6, Units: 1}, {Call: 5, Reply: 7, Units: 1},
		{Call: 5, Reply: 10, Units: 1},
	})
	if v.LeakUnits != 2 || v.LeakedRequests != 2 {
		t.Errorf("%d units of %d requests leaked", v.LeakUnits, v.LeakedRequests)
	}
}

// TestEqualChoicesOfRollingWindows: one window with 3 units too many ends before two
// with 2 and 1, and is the one that is shown.
func TestEqualChoicesOfRollingWindows(t *testing.T) {
	var events []Event
	for _, at := range []int64{10, 11, 12, 15, 18} {
		events = append(events, Event{Call: at, Reply: at, Units: 1})
	}
	v := Judge(rollingConfig(1, 0), events)
	if v.LeakUnits != 3 || v.LeakWindows != 1 || v.LeakWorst != 3 {
		t.Errorf("%d units leaked in %d windows, %d in the worst", v.LeakUnits, v.LeakWindows, v.LeakWorst)
	}
}

// TestWindowBehindInitialUnits: what is over the limit once the initial units have
// left is leak again, also in a window that begins just after another one.
func TestWindowBehindInitialUnits(t *testing.T) {
	early := Event{Call: -5, Reply: 0, Units: 1}
	late := Event{Call: 4, Reply: 4, Units: 1}
	v := Judge(rollingConfig(1, 2), []Event{early, early, late, late})
	if v.LeakUnits != 3 || v.LeakWindows != 2 || v.LeakWorst != 2 {
		t.Errorf("%d units leaked in %d windows, %d in the worst", v.LeakUnits, v.LeakWindows, v.LeakWorst)
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

// TestOnlyFailures: under a rolling window, requests that failed are asked for but
// not answered, so nothing is crossed.
func TestOnlyFailures(t *testing.T) {
	failed := Event{Call: 1, Reply: 1, Units: 1, Outcome: Failed}
	for _, c := range []struct {
		events    []Event
		crossings int64
	}{{[]Event{failed, failed}, 0}, {[]Event{failed, failed, one(0, 1, 1, Admitted)}, 0},
		{[]Event{one(0, 1, 1, Admitted), one(0, 1, 1, Rejected)}, 1}} {
		if v := Judge(rollingConfig(1, 0), c.events); v.OverOffered != int64(len(c.events)-1) || v.Crossings != c.crossings {
			t.Errorf("%+v: %d over, %d crossings, should be %d", c.events, v.OverOffered, v.Crossings, c.crossings)
		}
	}
}

// TestVisitors: a visitor of a history is shown each subject's events once, and its
// error ends the pass and is returned. Judging subjects one by one is no different.
func TestVisitors(t *testing.T) {
	testenv.Sequential(t)
	h, all := sample(t, HistoryOptions{Workers: 2})
	head := sampleHeader(t)
	cfg := head.Config()
	var seen []Event
	v, err := h.Judge(cfg, func(events []Event) error {
		seen = append(seen, events...)
		return nil
	}, func([]Event) error { return nil })
	if err != nil || !slices.Equal(seen, all) || !reflect.DeepEqual(v, Judge(cfg, all)) {
		t.Errorf("%d events of %d were seen: %v", len(seen), len(all), err)
	}
	until := int64(0)
	for i := range all {
		until = max(until, all[i].Reply)
	}
	if again, err := JudgeSubjects(cfg, until, h.Subjects()); err != nil || !reflect.DeepEqual(again, v) {
		t.Errorf("subject by subject: %v", err)
	}
	stop := errors.New("seen enough")
	n := 0
	if v, err := h.Judge(cfg, func([]Event) error {
		n++
		return stop
	}); !errors.Is(err, stop) || n != 1 || v.Issued.Requests != 0 {
		t.Errorf("%d subjects, %v, %+v", n, err, v.Issued)
	}
	broken := func(yield func([]Event, error) bool) { yield(nil, stop) }
	if v, err := JudgeSubjects(cfg, until, broken); !errors.Is(err, stop) || v.Issued.Requests != 0 {
		t.Errorf("%v, %+v", err, v.Issued)
	}
}

// TestWindowsThatTouch: the end of a window is the first moment of the next one
// only if that one still holds its units then. A refund whose take is not known
// hides the first excess up to 300, and the second one is gone at 400.
func TestWindowsThatTouch(t *testing.T) {
	v := Judge(Config{Window: quota.Window{Kind: quota.Rolling, Length: 100}, Limit: 1, Epoch: time.Unix(1_000_000, 0)},
		[]Event{
			{Kind: Refund, Call: 200, Reply: 201, Units: 5},
			{Call: 201, Reply: 202, Units: 6},
			{Call: 300, Reply: 302, Units: 6},
		})
	if v.LeakUnits != 5 || v.LeakWindows != 1 {
		t.Errorf("a leak of %d units in %d windows, want 5 in 1", v.LeakUnits, v.LeakWindows)
	}
}
