package oracle

import (
	"errors"
	"iter"
	"math"
	"slices"
	"testing"
)

const farSubject = denseSubjects + 9

// passing is an index of events by subject, and the extents of the passes over
// them since.
func passing(t *testing.T, groups int64, events []Event) (*index, *[]extent) {
	t.Helper()
	var passes []extent
	x, err := newIndex(func(want extent, visit func(*Event) error) error {
		passes = append(passes, want)
		for i := range events {
			if err := visit(&events[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	x.groups = groups
	passes = nil
	return x, &passes
}

// TestPasses: a pass brings as many whole subjects into memory as a group may
// have events, at least one.
func TestPasses(t *testing.T) {
	var events []Event // three of each of 0 to 2, none of 3, two of a subject with a high number
	for i := range int64(3) {
		for s := range uint32(3) {
			events = append(events, Event{Subject: s, Call: 9 - i, Reply: 9, Units: 1})
		}
	}
	events = append(events, Event{Subject: farSubject, Units: 1}, Event{Subject: farSubject, Reply: 1, Units: 1},
		Event{Subject: 4})
	all := ordered(events)
	for _, c := range []struct {
		groups int64
		passes []extent
	}{
		{1, []extent{{0, 0}, {1, 1}, {2, 2}, {3, 4}, {farSubject, farSubject}}},
		{3, []extent{{0, 0}, {1, 1}, {2, 3}, {4, farSubject}}},
		{4, []extent{{0, 0}, {1, 1}, {2, 4}, {farSubject, farSubject}}},
		{5, []extent{{0, 0}, {1, 1}, {2, 4}, {farSubject, farSubject}}},
		{6, []extent{{0, 1}, {2, farSubject}}},
		{11, []extent{{0, 4}, {farSubject, farSubject}}},
		{12, []extent{{0, farSubject}}},
	} {
		x, passes := passing(t, c.groups, events)
		got := collect(t, func(yield func([]Event, error) bool) { x.subjects(3, yield) })
		if !slices.Equal(got, all) || !slices.Equal(*passes, c.passes) {
			t.Errorf("groups of %d: passes over %v, should be over %v; %+v", c.groups, *passes, c.passes, got)
		}
	}
}

// TestTooManyEvents: the most events that one subject may have, and one more.
func TestTooManyEvents(t *testing.T) {
	events := make([]Event, 4000)
	for i := range events {
		events[i] = Event{Subject: farSubject, Call: int64(i), Reply: int64(i), Units: 1}
	}
	x, _ := passing(t, 1, events)
	if got := collect(t, func(yield func([]Event, error) bool) { x.subjects(4000, yield) }); !slices.Equal(got, events) {
		t.Error("events differ")
	}
	const want = "subject 4194313 has 4000 events; one subject is judged in memory at up to 550 bytes an event, 2 MiB " +
		"for this one, and at most 3999 events (2 MiB) are allowed"
	x.subjects(3999, func(got []Event, err error) bool {
		if err == nil || err.Error() != want {
			t.Errorf("%d events, %v", len(got), err)
		}
		return false
	})
}

// TestHistoryThatChanges: what is not what was counted is refused.
func TestHistoryThatChanges(t *testing.T) {
	take := func(subjects ...uint32) (out []Event) {
		for _, s := range subjects {
			out = append(out, Event{Subject: s, Units: 1})
		}
		return out
	}
	for _, c := range []struct {
		name        string
		was, events []Event
		groups      int64
		same        bool
	}{
		{"in another order", take(0, 1, 1), take(1, 0, 1), 9, true},
		{"one more of the last subject", take(0, 1), take(0, 1, 1), 9, false},
		{"one more of the last subject of a group", take(0, 0, 1), take(0, 0, 0, 1), 2, false},
		{"one more of the first subject", take(0, 1), take(0, 0, 1), 9, false},
		{"one of the first instead of the last", take(0, 1), take(0, 0), 9, false},
		{"one fewer", take(0, 1), take(0), 9, false},
		{"one of a subject that was not there", take(0, farSubject), take(0, farSubject+1), 9, false},
		{"one of a low number instead of a high one", take(0, farSubject), take(0, 1), 9, false},
	} {
		for _, how := range []string{"events", "blocks"} {
			now := slices.Clone(c.was)
			var x *index
			x, err := newIndex(func(_ extent, visit func(*Event) error) error {
				for i := range now {
					if err := visit(&now[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			x.groups = c.groups
			now = c.events
			if how == "blocks" {
				b := block{}
				for i := range now {
					b.takes = append(b.takes, pack(&now[i]))
				}
				x.blocks = func() iter.Seq[block] { return slices.Values([]block{b}) }
			}
			var failed error
			x.subjects(math.MaxInt64, func(_ []Event, err error) bool {
				failed = err
				return err == nil
			})
			if c.same != (failed == nil) || failed != nil && !errors.Is(failed, errChanged) {
				t.Errorf("%s, by %s: %v", c.name, how, failed)
			}
		}
	}
}
