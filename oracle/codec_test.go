package oracle

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"
)

// encodings are events as they follow each other in a frame, with the bytes that
// FORMAT.md asks for. Each field is different from the event before somewhere.
var encodings = []struct {
	name  string
	event Event
	bytes string
}{
	{"one unit, all else as before", Event{Call: 5, Reply: 8, Units: 1}, "70 0a 06"},
	{"rejected, earlier, elsewhere",
		Event{Call: 4, Reply: 4, Units: 3, Subject: 2, Outcome: Rejected, Tier: 1, Instance: 2}, "04 01 00 04 06 01 02"},
	{"a refund that failed", Event{Kind: Refund, Outcome: Failed, Call: 10, Reply: 12, Units: 1, Subject: 2, Tier: 1,
		Instance: 2, TakeCall: 4, TakeReply: 7}, "79 0c 04 0c 06"},
	{"an overrun", Event{Kind: Commit, Call: 10, Reply: 10, Units: -3, Subject: 2, Tier: 1, Instance: 2, TakeCall: 10,
		TakeReply: 10}, "62 00 00 05 00 00"},
	{"an expiry at another instance",
		Event{Kind: Expire, Call: 11, Reply: 11, Units: 1, Subject: 2, Tier: 1, Instance: 3, TakeCall: 10, TakeReply: 12},
		"53 02 00 01 03 02 04"},
	{"without the store, of another tier",
		Event{Outcome: RejectedDegraded, Call: 11, Reply: 12, Units: 1, Subject: 2, Tier: 4, Instance: 3}, "5c 00 02 04 03"},
	{"no kind that there is", Event{Kind: 77, Call: 11, Reply: 11, Units: 1, Subject: 1, Tier: 4, Instance: 3,
		TakeCall: 11, TakeReply: 11}, "b1 4d 00 00 00 01 00 00"},
	{"no outcome that there is", Event{Outcome: 99, Call: 11, Reply: 11, Units: 1, Subject: 1, Tier: 4, Instance: 3},
		"fc 00 63 00 00"},
	{"short of units", Event{Outcome: Short, Call: 11, Reply: 11, Units: 1, Subject: 1, Tier: 4, Instance: 3},
		"f0 00 04 00 00"},
	{"the first of each that there is not",
		Event{Kind: kinds, Outcome: outcomes, Call: 11, Reply: 11, Units: 1, Subject: 1, Tier: 4, Instance: 3, TakeCall: 11,
			TakeReply: 11}, "f8 04 06 00 00 00 00"},
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decoded reads a payload of events.
func decoded(payload []byte, want extent) (events []Event, err error) {
	err = decodeEvents(payload, want, func(e *Event) error {
		events = append(events, *e)
		return nil
	})
	return events, err
}

// TestEventBytes: the bytes of an event are those that other programs read.
func TestEventBytes(t *testing.T) {
	var c codec
	whole := unhex(t, "00 02")
	var want []Event
	for _, x := range encodings {
		if got := c.append(nil, &x.event); !bytes.Equal(got, unhex(t, x.bytes)) {
			t.Errorf("%s: % x, should be %s", x.name, got, x.bytes)
		}
		whole = append(whole, unhex(t, x.bytes)...)
		want = append(want, x.event)
	}
	if got, err := decoded(whole, everySubject); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: %+v, should be %+v", err, got, want)
	}
}

// TestEventsCutOff: an event that ends too early is never read, wherever it ends,
// and neither is a number that no 64 bits hold.
func TestEventsCutOff(t *testing.T) {
	all := append(everySubject.append(nil), 0x70, 0, 0) // an event before
	for _, x := range encodings {
		var c codec
		b := c.append(nil, &x.event)
		for n := range len(b) + 1 {
			events, err := decoded(slices.Concat(all, b[:n]), everySubject)
			if whole := n == 0 || n == len(b); whole != (err == nil) || len(events) != 1+n/len(b) {
				t.Errorf("%s, %d bytes of %d: %v, %+v", x.name, n, len(b), err, events)
			}
		}
	}
	long := append(bytes.Repeat([]byte{0xff}, 10), 1)
	if events, err := decoded(slices.Concat(all, []byte{0x70}, long, []byte{0}), everySubject); err == nil {
		t.Errorf("a call of more than 64 bits is read: %+v", events)
	}
}

// TestSubjectsOfEvents: a frame is refused if an event is about none of the
// subjects that it says it is about, or about none that can be.
func TestSubjectsOfEvents(t *testing.T) {
	for _, c := range []struct {
		name, payload string
		subject       int64 // -1: refused
	}{
		{"no extent", "", -1},
		{"half an extent", "05", -1},
		{"half a number", "80", -1},
		{"half a second number", "05 80", -1},
		{"a first number of more than 64 bits", "ff ff ff ff ff ff ff ff ff ff 01 00", -1},
		{"the last subject", "ff ff ff ff 0f 00 30 00 00 fe ff ff ff 1f", math.MaxUint32},
		{"behind the last subject", "80 80 80 80 10 00", -1},
		{"up to the last subject", "05 fa ff ff ff 0f 30 00 00 0a", 5},
		{"up to one behind the last subject", "05 fb ff ff ff 0f", -1},
		{"the lowest of two", "05 01 30 00 00 0a", 5},
		{"the highest of two", "05 01 30 00 00 0c", 6},
		{"one lower", "05 01 30 00 00 08", -1},
		{"one higher", "05 01 30 00 00 0e", -1},
		{"below 0", "00 ff ff ff ff 0f 30 00 00 01", -1},
		{"above all", "00 ff ff ff ff 0f 30 00 00 80 80 80 80 20", -1},
	} {
		events, err := decoded(unhex(t, c.payload), everySubject)
		if (err == nil) != (c.subject >= 0) || err == nil && (len(events) != 1 || int64(events[0].Subject) != c.subject) {
			t.Errorf("%s: %v, %+v", c.name, err, events)
		}
	}
}

// TestFramesPassedOver: a frame is read only for a subject that it may be about.
func TestFramesPassedOver(t *testing.T) {
	payload := unhex(t, "05 01 30 00 00 0a 30 00 00 02") // subjects 5 and 6
	for _, c := range []struct {
		want extent
		n    int
	}{{extent{0, 4}, 0}, {extent{0, 5}, 2}, {extent{5, 5}, 2}, {extent{6, 6}, 2}, {extent{6, 9}, 2}, {extent{7, 9}, 0},
		{everySubject, 2}} {
		if events, err := decoded(payload, c.want); err != nil || len(events) != c.n {
			t.Errorf("subjects %d to %d: %d events, should be %d: %v", c.want.low, c.want.high, len(events), c.n, err)
		}
	}
}

// TestCompareFields: events are ordered by every field that matters, the first
// that differs counts, and no difference is too large.
func TestCompareFields(t *testing.T) {
	least := Event{Call: math.MinInt64, Reply: math.MinInt64, Units: math.MinInt64, TakeCall: math.MinInt64,
		TakeReply: math.MinInt64}
	fields := []func(*Event){ // the last first
		func(e *Event) { e.TakeReply = math.MaxInt64 },
		func(e *Event) { e.TakeCall = math.MaxInt64 },
		func(e *Event) { e.Units = math.MaxInt64 },
		func(e *Event) { e.Outcome = math.MaxUint8 },
		func(e *Event) { e.Kind = math.MaxUint8 },
		func(e *Event) { e.Reply = math.MaxInt64 },
		func(e *Event) { e.Call = math.MaxInt64 },
		func(e *Event) { e.Subject = math.MaxUint32 },
	}
	rising := []Event{least}
	all := least
	for i, set := range fields {
		e := least
		set(&e)
		rising = append(rising, e)
		set(&all)
		if i > 0 {
			rising = append(rising, all)
		}
	}
	for i, a := range rising {
		for k, b := range rising {
			if got := compare(a, b); got != cmp.Compare(i, k) {
				t.Errorf("%+v against %+v: %d", a, b, got)
			}
		}
	}
}
