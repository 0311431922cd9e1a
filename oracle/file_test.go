package oracle

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// sample is a history with everything in it: all kinds and outcomes, odd numbers,
// sparse subjects, malformed events.
func sample(t testing.TB, o HistoryOptions) (*History, []Event) {
	t.Helper()
	r := seeded(31)
	var all []Event
	for i := range int64(20_000) {
		e := Event{Call: i * 100, Units: 1, Subject: uint32(r.Int64N(50)), Outcome: Outcome(r.IntN(4)),
			Tier: uint8(r.IntN(3)), Instance: uint8(r.IntN(2))}
		e.Reply = e.Call + r.Int64N(500)
		switch r.IntN(10) {
		case 0:
			e.Kind = Kind(1 + r.IntN(3))
			e.Units = r.Int64N(9) - 3
			e.TakeCall = e.Call - r.Int64N(1000)
			e.TakeReply = e.Call - 10
		case 1:
			e.Units = r.Int64N(1 << 40)
		}
		all = append(all, e)
	}
	all = append(
		all, Event{Call: math.MinInt64, Reply: math.MaxInt64, Units: math.MinInt64, Subject: math.MaxUint32},
		Event{Kind: 77, Outcome: 99, Units: -1, TakeCall: math.MaxInt64, TakeReply: math.MinInt64},
		Event{Kind: kinds, Units: 1}, Event{Outcome: outcomes, Units: 1}, Event{Kind: kinds + 1},
		Event{Outcome: outcomes + 1},
		Event{Subject: denseSubjects + 7, Units: 1}, Event{Subject: denseSubjects, Units: 1},
	)
	h := NewHistory(o)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, e := range all {
		h.Append(i%o.Workers, e)
	}
	return h, ordered(all)
}

func sampleHeader(t testing.TB) Header {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("no time zone data on this machine: %v", err)
	}
	return Header{
		Strategy: "counter:retry=2", Epoch: time.Unix(1_793_491_200, 17).UTC(), Counts: quota.CountsAttempts,
		Tiers: []string{"", "redis"},
		Policy: quota.Policy{Name: "p", Limit: 40, Unit: "units", Window: quota.Window{
			Kind: quota.CalendarHour, Location: zone,
			Timeline: quota.Timeline{Real: time.Unix(1_793_491_200, 17).UTC(), Policy: time.Unix(5, 0).UTC(), Speed: 2.5},
		}},
		Initial: map[uint32]int64{0: 3, 49: -7, math.MaxUint32: math.MaxInt64},
		Names:   map[uint32]string{1: "alice", 2: "", 4_000_000_000: "bob"},
	}
}

func write(t testing.TB, head Header, h *History) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHistory(&b, head, h); err != nil {
		t.Fatal(err)
	}
	return store(t, b.Bytes())
}

func store(t testing.TB, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.history")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func open(t testing.TB, name string) *File {
	t.Helper()
	f, err := OpenHistory(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func collect(t testing.TB, subjects func(func([]Event, error) bool)) []Event {
	t.Helper()
	var out []Event
	last := int64(-1)
	for events, err := range subjects {
		if err != nil {
			t.Fatal(err)
		}
		if s := int64(events[0].Subject); s <= last || events[len(events)-1].Subject != events[0].Subject {
			t.Fatalf("subject %d after %d", s, last)
		}
		last = int64(events[0].Subject)
		out = append(out, events...)
	}
	return out
}

// TestHistoryFileRoundTrip: a history is the same in memory, spilled, and written
// and read again, and so is the verdict on it.
func TestHistoryFileRoundTrip(t *testing.T) {
	head := sampleHeader(t)
	cfg := head.Config()
	memory, all := sample(t, HistoryOptions{Workers: 3, Limit: 1 << 20})
	want := Judge(cfg, all)
	spilled, _ := sample(t, HistoryOptions{Workers: 3, Dir: t.TempDir(), Memory: 5000})
	if n := spilled.Spilled(); n < 5000 {
		t.Errorf("%d events spilled", n)
	}
	if memory.Spilled() != 0 {
		t.Error("a history in memory spilled")
	}
	for name, h := range map[string]*History{"memory": memory, "spilled": spilled} {
		t.Run(name, func(t *testing.T) {
			if h.Len() != len(all) || h.Lost() != 0 || h.Err() != nil {
				t.Fatalf("%d events of %d, %d lost, %v", h.Len(), len(all), h.Lost(), h.Err())
			}
			if got := collect(t, h.Subjects()); !slices.Equal(got, all) {
				t.Error("subjects differ")
			}
			if v, err := h.Judge(cfg); err != nil || !reflect.DeepEqual(v, want) {
				t.Errorf("%v: %+v, should be %+v", err, v.Admitted, want.Admitted)
			}
			f := open(t, write(t, head, h))
			if !slices.Equal(collect(t, f.Subjects()), all) {
				t.Error("the file's events differ")
			}
			if f.Takes+f.GiveBacks != int64(len(all)) || f.GiveBacks == 0 {
				t.Errorf("%d and %d events", f.Takes, f.GiveBacks)
			}
			if v, err := f.Judge(); err != nil || !reflect.DeepEqual(v, want) {
				t.Errorf("the file: %v: %+v, should be %+v", err, v.Admitted, want.Admitted)
			}
			if got, want := f.Header.Policy.Window.Location.String(), head.Policy.Window.Location.String(); got != want {
				t.Errorf("location %s, should be %s", got, want)
			}
			f.Header.Policy.Window.Location = head.Policy.Window.Location
			if !reflect.DeepEqual(f.Header, head) {
				t.Errorf("header %+v, should be %+v", f.Header, head)
			}
		})
	}
}

// TestGroups: however few subjects are brought into memory at a time, each comes
// whole and in order.
func TestGroups(t *testing.T) {
	testenv.Sequential(t)
	h, all := sample(t, HistoryOptions{Workers: 2, Limit: 1 << 20})
	for _, n := range []int64{1, 400, 401, 5000, 1 << 30} {
		x, err := h.index()
		if err != nil {
			t.Fatal(err)
		}
		if x.blocks == nil {
			t.Fatal("a history in memory is not read in blocks")
		}
		x.groups = n
		for _, how := range []string{"blocks", "events"} {
			got := collect(t, func(yield func([]Event, error) bool) { x.subjects(math.MaxInt64, yield) })
			if !slices.Equal(got, all) {
				t.Errorf("groups of %d, by %s: events differ", n, how)
			}
			x.blocks = nil
		}
	}
	n := 0
	for range h.Subjects() {
		n++
		if n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d subjects after a break at 2", n)
	}
}

// TestSubjectTooLarge: what cannot be judged is refused with the arithmetic, and
// the run is told before.
func TestSubjectTooLarge(t *testing.T) {
	h := NewHistory(HistoryOptions{Workers: 1, Dir: t.TempDir(), Memory: 8192, SubjectLimit: 60_000})
	defer func() { _ = h.Close() }()
	early := 0
	for i := range 70_000 {
		if h.Full() {
			early++
		}
		h.Append(0, Event{Call: int64(i), Reply: int64(i), Units: 1})
	}
	if early < 10_000 || early > 25_000 {
		t.Errorf("called full for the last %d of 70000 events", early)
	}
	if h.Lost() != 0 {
		t.Errorf("%d events lost", h.Lost())
	}
	_, err := h.Judge(Config{Limit: 1})
	if err == nil || err.Error() != "subject 0 has 70000 events; one subject is judged in memory at up to 550 bytes an "+
		"event, 36 MiB for this one, and at most 60000 events (31 MiB) are allowed" {
		t.Errorf("judged: %v", err)
	}
	for _, err := range h.Subjects() {
		if err == nil {
			t.Error("a subject too large is handed out")
		}
	}
}

// TestDirectoryGone: what cannot be written is reported, the run is told to end,
// and what was recorded up to then is kept.
func TestDirectoryGone(t *testing.T) {
	h := NewHistory(HistoryOptions{Workers: 1, Dir: filepath.Join(t.TempDir(), "missing"), Memory: 10_000})
	n := int64(0)
	for ; !h.Full() && n < 1_000_000; n++ {
		h.Append(0, Event{Call: n, Reply: n, Units: 1})
	}
	if h.Err() == nil || n > 30_000 {
		t.Fatalf("%v after %d events", h.Err(), n)
	}
	if v, err := h.Judge(Config{Limit: 1}); err != nil || v.Issued.Requests != n {
		t.Errorf("judged %d of %d: %v", v.Issued.Requests, n, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// TestDiskFull: frames that were not written whole are not read, and their events
// are still in memory.
func TestDiskFull(t *testing.T) {
	remove := removeOpen
	removeOpen = func(string) error { return errors.ErrUnsupported } // so that it can be opened again
	defer func() { removeOpen = remove }()
	dir := t.TempDir()
	h := NewHistory(HistoryOptions{Workers: 1, Dir: dir, Memory: 10_000})
	n := int64(0)
	put := func() {
		h.Append(0, Event{Call: n, Reply: n, Units: 1})
		n++
	}
	for h.Spilled0() == 0 {
		put()
	}
	h.mu.Lock()
	if err := h.spill.file.Close(); err != nil { // as if it failed from here on
		t.Fatal(err)
	}
	name := h.spill.file.Name()
	h.mu.Unlock()
	for !h.Full() {
		put()
	}
	for range 100_000 {
		put()
	}
	lost := h.Lost()
	if h.Err() == nil || lost == 0 {
		t.Fatalf("%v, %d lost", h.Err(), lost)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	h.spill.file = file
	v, err := h.Judge(Config{Limit: 1})
	if err != nil || v.Issued.Requests+lost != n {
		t.Errorf("judged %d and lost %d of %d: %v", v.Issued.Requests, lost, n, err)
	}
	if err := WriteHistory(io.Discard, Header{}, h); err == nil {
		t.Error("a history that lost events is written")
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%d files left behind", len(left))
	}
}

// Spilled0 is the size of the file so far.
func (h *History) Spilled0() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spill == nil {
		return 0
	}
	return h.spill.size
}

// TestDamagedFiles: each way of being damaged is told in one line.
func TestDamagedFiles(t *testing.T) {
	h, _ := sample(t, HistoryOptions{Workers: 1, Limit: 1 << 20})
	var b bytes.Buffer
	if err := WriteHistory(&b, sampleHeader(t), h); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	changed := func(at int) []byte {
		out := slices.Clone(whole)
		out[at] ^= 1
		return out
	}
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"empty", "not a history file", nil},
		{"something else", "not a history file", []byte("PK\x03\x04 something else\n")},
		{"first line only half", "cut off", []byte("quotabench-history 1")},
		{"another format", `a history of format "5", this program reads formats 1, 2, 3`, []byte("quotabench-history 5\nabc")},
		{"no header", "after 0 events, at byte 21: the file is cut off", whole[:21]},
		{"in the middle", "the file is cut off", whole[:len(whole)/2]},
		{"without its last byte", "the file is cut off", whole[:len(whole)-1]},
		{"a bit flipped", "a checksum is wrong", changed(len(whole) / 2)},
		{"a bit of the header", "at byte 21: a checksum is wrong", changed(60)},
		{"something behind", "something follows the footer", append(slices.Clone(whole), 0)},
		{"two files", "something follows the footer", append(slices.Clone(whole), whole...)},
		{"huge frame", "a frame claims more than 1048576 bytes",
			append(slices.Clone(whole[:21]), 'H', 0xff, 0xff, 0xff, 0xff, 0xff)},
	} {
		name := store(t, c.data)
		f, err := OpenHistory(name)
		if err == nil {
			t.Errorf("%s: opened", c.name)
			_ = f.Close()
			continue
		}
		if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), name+": ") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := OpenHistory(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestForgedFrames: frames with right checksums and wrong contents.
func TestForgedFrames(t *testing.T) {
	head := Header{Policy: quota.Policy{Limit: 1}}
	good, err := head.encode()
	if err != nil {
		t.Fatal(err)
	}
	type frame struct {
		kind    byte
		payload []byte
	}
	begin := frame{frameHeader, good}
	for _, c := range []struct {
		name, want string
		frames     []frame
	}{
		{"events first", "header is missing", []frame{{frameEvents, []byte{0, 0}}}},
		{"two headers", "comes twice", []frame{begin, begin}},
		{"no JSON", "header cannot be read", []frame{{frameHeader, []byte("{")}}},
		{"no such zone", "not known on this machine", []frame{{frameHeader, []byte(`{"policy":{"location":"Europe/Nowhere"}}`)}}},
		{"no such window", "header cannot be read", []frame{{frameHeader, []byte(`{"policy":{"window":"lunar"}}`)}}},
		{"no length", "no length", []frame{{frameHeader, []byte(`{"policy":{"window":"rolling"}}`)}}},
		{"negative speed", "speed of -1", []frame{{frameHeader, []byte(`{"policy":{"window":"standing","timeline":{"real":"2026-01-01T00:00:00Z","policy":"2026-01-01T00:00:00Z","speed":-1}}}`)}}},
		{"unknown frame", `unknown kind 'Q'`, []frame{begin, {'Q', nil}}},
		{"no extent", "cut off or has no valid form", []frame{begin, {frameEvents, nil}}},
		{"half a table", "table of subjects", []frame{begin, {frameInitial, []byte{1}}}},
		{"footer of nothing", "footer has no valid form", []frame{begin, {frameFooter, nil}}},
		{"other sum", "checksum over all frames", []frame{begin, {frameFooter, []byte{0, 0, 1, 2, 3, 4}}}},
	} {
		var b bytes.Buffer
		b.WriteString("quotabench-history 1\n")
		var w frameWriter
		for _, f := range c.frames {
			if err := w.frame(&b, f.kind, func(b []byte) []byte { return append(b, f.payload...) }); err != nil {
				t.Fatal(err)
			}
		}
		f, err := OpenHistory(store(t, b.Bytes()))
		if err == nil {
			_ = f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, should say %q", c.name, err, c.want)
		}
	}
}

// TestHeadersThatCannotBeKept are refused when writing.
func TestHeadersThatCannotBeKept(t *testing.T) {
	h := NewHistory(HistoryOptions{Workers: 1})
	for name, head := range map[string]Header{
		"fixed zone": {Policy: quota.Policy{Window: quota.Window{Kind: quota.CalendarDay,
			Location: time.FixedZone("here", 3600)}}},
		"local zone": {Policy: quota.Policy{Window: quota.Window{Kind: quota.CalendarDay, Location: time.Local}}},
		"no length":  {Policy: quota.Policy{Window: quota.Window{Kind: quota.Fixed}}},
		"long name":  {Names: map[uint32]string{0: strings.Repeat("a", maxName+1)}},
		"late epoch": {Epoch: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if err := WriteHistory(io.Discard, head, h); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// TestManyNames: tables that need more than one frame.
func TestManyNames(t *testing.T) {
	head := Header{Names: map[uint32]string{}, Initial: map[uint32]int64{}}
	for i := range uint32(1000) {
		head.Names[i*7] = strings.Repeat("n", maxName-int(i))
		head.Initial[i*3] = int64(i)
	}
	f := open(t, write(t, head, NewHistory(HistoryOptions{Workers: 1})))
	if !maps.Equal(f.Header.Names, head.Names) || !maps.Equal(f.Header.Initial, head.Initial) {
		t.Error("names or initial units differ")
	}
	if v, err := f.Judge(); err != nil || v.Issued.Requests != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestTooManyWindows: a crafted operation cannot make the judge walk forever.
func TestTooManyWindows(t *testing.T) {
	h := NewHistory(HistoryOptions{Workers: 1})
	h.Append(0, Event{Call: 0, Reply: 1 << 59, Units: 1})
	head := Header{Policy: quota.Policy{Limit: 1, Window: quota.Window{Kind: quota.Fixed, Length: 1}}}
	if _, err := open(t, write(t, head, h)).Judge(); err == nil || !strings.Contains(err.Error(), "windows") {
		t.Errorf("judged: %v", err)
	}
	f := open(t, write(t, Header{Policy: quota.Policy{Limit: 1}}, h))
	if _, err := f.JudgeBy(Config{Window: quota.Window{Kind: quota.Rolling}}); err == nil {
		t.Error("judged by a window without a length")
	}
}

// FuzzEvents: every event survives, whatever its numbers.
func FuzzEvents(f *testing.F) {
	f.Add(int64(1), int64(2), int64(1), uint32(3), uint8(0), uint8(0), uint8(1), uint8(2), int64(0), int64(0))
	f.Add(int64(math.MinInt64), int64(math.MaxInt64), int64(-5), uint32(1<<32-1), uint8(9), uint8(200), uint8(1), uint8(2),
		int64(7), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, call, reply, units int64, subject uint32, kind, outcome, tier, instance uint8, tc,
		tr int64) {
		e := Event{Call: call, Reply: reply, Units: units, Subject: subject, Kind: Kind(kind), Outcome: Outcome(outcome),
			Tier: tier, Instance: instance}
		if e.Kind != Take {
			e.TakeCall = tc
			e.TakeReply = tr
		}
		second := e
		second.Call = reply
		second.Units = call
		second.Instance = 0
		want := []Event{e, second, e, e}
		x := extent{low: math.MaxUint32}
		x.widen(subject)
		var c codec
		b := x.append(nil)
		for i := range want {
			b = c.append(b, &want[i])
		}
		var got []Event
		if err := decodeEvents(b, everySubject, func(e *Event) error {
			got = append(got, *e)
			return nil
		}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v: %+v, should be %+v", err, got, want)
		}
	})
}

// FuzzOpenHistory: whatever a file holds, it is read without a panic and without
// more memory than its size accounts for, and what is whole can be judged.
func FuzzOpenHistory(f *testing.F) {
	h := NewHistory(HistoryOptions{Workers: 1})
	for i := range int64(20) {
		h.Append(0, Event{Call: i, Reply: i + 3, Units: 1 + i%2, Subject: uint32(i % 3)})
	}
	h.Append(0, Event{Kind: Refund, Call: 30, Reply: 31, Units: 1, TakeCall: 1, TakeReply: 4})
	var b bytes.Buffer
	head := Header{Policy: quota.Policy{Limit: 3}, Names: map[uint32]string{1: "a"}, Initial: map[uint32]int64{2: 1}}
	if err := WriteHistory(&b, head, h); err != nil {
		f.Fatal(err)
	}
	f.Add(slices.Clone(b.Bytes()))
	f.Add(slices.Clone(b.Bytes()[:len(b.Bytes())-3]))
	f.Add([]byte("quotabench-history 1\nE\x05"))
	b.Reset()
	head.Changes = []LimitChange{{4, 6, 1}, {9, 9, 5}}
	if err := WriteHistory(&b, head, h); err != nil {
		f.Fatal(err)
	}
	f.Add(slices.Clone(b.Bytes()))
	f.Fuzz(func(t *testing.T, data []byte) {
		var out File
		x := index{groups: groupEvents}
		out.want = everySubject
		out.index = &x
		if err := out.read(bytes.NewReader(data), func(e *Event) {
			if e.Subject < 1<<16 {
				x.add(e)
			}
		}); err != nil {
			return
		}
		if x.total > int64(len(data)) {
			t.Errorf("%d events in %d bytes", x.total, len(data))
		}
	})
}

// FuzzFrame: payloads with a right checksum and any contents.
func FuzzFrame(f *testing.F) {
	f.Add(byte(frameEvents), []byte{0, 3, 0, 2, 4, 2, 8, 1, 1})
	f.Add(byte(frameNames), []byte{1, 1, 'a', 7, 0})
	f.Add(byte(frameInitial), []byte{1, 1, 2, 9})
	f.Add(byte(frameHeader), []byte(`{"policy":{"limit":3,"window":"fixed","length_ns":5,"location":"UTC"}}`))
	f.Add(byte(frameHeader), []byte(`{"policy":{"limit":3,"window":"rolling","length_ns":5},"limits":[{"from_ns":1,"to_ns":2,"limit":5}]}`))
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		out := File{want: everySubject}
		n := 0
		err := out.frame(kind, payload, func(*Event) { n++ })
		if n > len(payload) || len(out.Header.Names)+len(out.Header.Initial) > len(payload) {
			t.Errorf("%d events, %d names in %d bytes", n, len(out.Header.Names), len(payload))
		}
		if err != nil || kind != frameHeader {
			return
		}
		if again, err := out.Header.encode(); err == nil {
			if err := new(Header).decode(again); err != nil {
				t.Errorf("%s: %v", again, err)
			}
		}
	})
}
