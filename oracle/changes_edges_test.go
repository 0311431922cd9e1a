package oracle

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// TestChangesOfPartialGrants: the units that a request was not granted were rejected
// by the limits that it can have seen. What it was granted may have come later.
func TestChangesOfPartialGrants(t *testing.T) {
	granted := func(call, reply int64) []Event {
		e := Event{Call: call, Reply: reply, Units: 2}
		short := Event{Call: call, Reply: reply, Units: 4, Outcome: Short}
		return []Event{e, short}
	}
	for _, c := range []struct {
		name            string
		limit           int64
		events          []Event
		certain, likely int64
	}{
		{"before the limit was raised", 2, granted(5, 9), 0, 2},
		{"meanwhile", 2, granted(5, 20), 0, 4},
		{"when it may have been raised", 2, granted(11, 11), 0, 4},
		{"after that", 2, granted(13, 20), 3, 4},
		{"before it was lowered", 6, granted(5, 9), 4, 4},
		{"while it was lowered", 6, granted(5, 20), 3, 4},
	} {
		v := Judge(changing(quota.Standing, c.limit, 0, []LimitChange{{10, 12, 5}}), c.events)
		if v.FalseRejectUnits != c.certain || v.FalseRejectUnitsPossible != c.likely {
			t.Errorf("%s: %d..%d units, should be %d..%d", c.name, v.FalseRejectUnits, v.FalseRejectUnitsPossible, c.certain,
				c.likely)
		}
	}
}

// TestRequestsUnderWayAtAChange: a request that was called before a change may still
// use the old limit, and one that is answered after it the new one.
func TestRequestsUnderWayAtAChange(t *testing.T) {
	changes := func(limit int64) []LimitChange { return []LimitChange{{10, 12, limit}} }
	for _, c := range []struct {
		name               string
		limit, later       int64
		event              Event
		leak, possibly     int64
		falsely, maybeThen int64
	}{
		{"admitted by the old limit", 2, 0, Event{Call: 9, Reply: 20, Units: 2}, 0, 2, 0, 0},
		{"admitted after the change may have come", 2, 0, Event{Call: 12, Reply: 20, Units: 2}, 0, 2, 0, 0},
		{"admitted after the change", 2, 0, Event{Call: 13, Reply: 20, Units: 2}, 2, 2, 0, 0},
		{"admitted by the new limit", 0, 2, Event{Call: 1, Reply: 10, Units: 2}, 0, 2, 0, 0},
		{"admitted before the change", 0, 2, Event{Call: 1, Reply: 9, Units: 2}, 2, 2, 0, 0},
		{"rejected by the old limit", 0, 2, Event{Call: 12, Reply: 20, Units: 2, Outcome: Rejected}, 0, 0, 0, 1},
		{"rejected after the change", 0, 2, Event{Call: 13, Reply: 20, Units: 2, Outcome: Rejected}, 0, 0, 1, 1},
		{"rejected by the new limit", 2, 0, Event{Call: 1, Reply: 10, Units: 2, Outcome: Rejected}, 0, 0, 0, 1},
		{"rejected before the change", 2, 0, Event{Call: 1, Reply: 9, Units: 2, Outcome: Rejected}, 0, 0, 1, 1},
	} {
		for name, window := range minutes() {
			v := Judge(Config{Window: window, Limit: c.limit, Changes: changes(c.later), Epoch: time.Unix(1_699_999_200, 0)},
				[]Event{c.event})
			if v.LeakUnits != c.leak || v.LeakPossible != c.possibly || v.FalseRejects != c.falsely ||
				v.FalseRejectsPossible != c.maybeThen {
				t.Errorf("%s, %s: leak %d..%d, false rejects %d..%d; should be %d..%d and %d..%d", name, c.name, v.LeakUnits,
					v.LeakPossible,
					v.FalseRejects, v.FalseRejectsPossible, c.leak, c.possibly, c.falsely, c.maybeThen)
			}
		}
	}
}

// TestAgreeUnderChanges: windows in which the limit changed are compared by what they
// admitted, and all others by everything under their own limit.
func TestAgreeUnderChanges(t *testing.T) {
	cfg := tumblingConfig(2, 0)
	cfg.Changes = []LimitChange{{12, 12, 1}}
	tally := func(admitted int) *Cell {
		c := &Cell{}
		for range admitted {
			c.Begin(1)
			c.Admit(1)
		}
		return c
	}
	first := cfg.Window.At(cfg.Epoch).Index
	events := []Event{one(0, 0, 1, Admitted), one(0, 2, 1, Admitted)}
	for _, at := range []int64{8, 10, 14, 18, 20} {
		events = append(events, one(0, at, 1, Admitted))
	}
	for i := range events {
		events[i].Reply = events[i].Call
	}
	v := Judge(cfg, events) // 2 under a limit of 2; 3 with the change after two; 2 under a limit of 1
	if v.LeakUnits != 2 {
		t.Errorf("leak of %d units, should be 1 in the second and 1 in the third window", v.LeakUnits)
	}
	cells := map[Key]*Cell{{Index: first}: tally(2), {Index: first + 1}: tally(3), {Index: first + 2}: tally(2)}
	if err := Agree(v, cfg, maps.All(cells)); err != nil {
		t.Error(err)
	}
	for i := range v.Windows { // a wrong leak is seen but in the second window
		wrong := v
		wrong.Windows = slices.Clone(v.Windows)
		wrong.Windows[i].Leak += 5
		if err := Agree(wrong, cfg, maps.All(cells)); (err == nil) != (i == 1) {
			t.Errorf("window %d: %v", i, err)
		}
	}
}

// TestChangesInFiles: changes are kept in files of format 3, which gives the verdict
// again, and files of other formats that have some are refused.
func TestChangesInFiles(t *testing.T) {
	h := NewHistory(HistoryOptions{Workers: 1})
	for _, e := range countedBy(map[int64]int64{0: 20}, 0, 30) {
		h.Append(0, e)
	}
	second := int64(time.Second)
	head := Header{
		Policy: quota.Policy{Limit: 20}, Epoch: time.Unix(5, 0).UTC(),
		Changes: []LimitChange{{14 * second, 14*second + 7, 10}, {14*second + 7, 20 * second, 0}},
	}
	var b bytes.Buffer
	if err := WriteHistory(&b, head, h); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	if !bytes.HasPrefix(whole, []byte("quotabench-history 3\n")) {
		t.Errorf("written as %.22q", whole)
	}
	f := open(t, store(t, whole))
	if !reflect.DeepEqual(f.Header.Changes, head.Changes) {
		t.Errorf("changes %+v, should be %+v", f.Header.Changes, head.Changes)
	}
	want, err := h.Judge(head.Config())
	if got, failed := f.Judge(); err != nil || failed != nil || !reflect.DeepEqual(got, want) || want.LeakUnits != 5 {
		t.Errorf("leak of %d and %d units, should be 5 (%v, %v)", got.LeakUnits, want.LeakUnits, err, failed)
	}
	older := bytes.Replace(whole, []byte("history 3"), []byte("history 2"), 1)
	if _, err := OpenHistory(store(t, older)); err == nil ||
		!strings.Contains(err.Error(), "a header of format 2 with limits that change") {
		t.Errorf("a header of format 2: %v", err)
	}
	head.Changes = nil
	b.Reset()
	if err := WriteHistory(&b, head, h); err != nil || !bytes.HasPrefix(b.Bytes(), []byte("quotabench-history 2\n")) {
		t.Errorf("without changes, written as %.22q (%v)", b.Bytes(), err)
	}
}

// TestChangesThatCannotBe are refused when judged, written and read.
func TestChangesThatCannotBe(t *testing.T) {
	month := quota.Window{Kind: quota.CalendarMonth}
	for _, c := range []struct {
		name    string
		window  quota.Window
		changes []LimitChange
		err     string
	}{
		{"bucket", quota.Window{Kind: quota.Bucket, Refill: 1, Length: 1}, []LimitChange{{1, 2, 3}},
			"the size of a bucket cannot change"},
		{"negative", month, []LimitChange{{1, 2, 0}, {3, 4, -1}}, "a limit of -1"},
		{"backwards", month, []LimitChange{{2, 1, 3}}, "change 1 of the limit lies in no valid interval"},
		{"before the epoch", month, []LimitChange{{-1, 1, 3}}, "change 1 of the limit lies in no valid interval"},
		{"too late", month, []LimitChange{{1, maxTime + 1, 3}}, "change 1 of the limit lies in no valid interval"},
		{"overlapping", month, []LimitChange{{1, 3, 3}, {2, 4, 5}}, "change 2 of the limit begins before"},
		{"too many", month, make([]LimitChange, maxChanges+1), "the limit changes 1025 times"},
	} {
		h := NewHistory(HistoryOptions{Workers: 1})
		head := Header{Policy: quota.Policy{Limit: 1, Window: c.window}, Changes: c.changes}
		for how, err := range map[string]error{
			"judged":  second(h.Judge(head.Config())),
			"written": WriteHistory(io.Discard, head, h),
			"a file":  second(open(t, write(t, Header{}, h)).JudgeBy(head.Config())),
		} {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s, %s: %v", c.name, how, err)
			}
		}
		payload, err := json.Marshal(headerJSON{Limits: c.changes,
			Policy: policyJSON{Limit: 1, Window: c.window.Kind, Length: int64(c.window.Length), Refill: c.window.Refill}})
		if err != nil {
			t.Fatal(err)
		}
		if err := new(Header).decode(payload); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s, read: %v", c.name, err)
		}
	}
	h := NewHistory(HistoryOptions{Workers: 1})
	touching := Config{Changes: []LimitChange{{0, 0, 1}, {0, maxTime, 0}, {maxTime, maxTime, 3}}}
	if _, err := h.Judge(touching); err != nil {
		t.Errorf("changes that touch: %v", err)
	}
}

func second(_ Verdict, err error) error { return err }
