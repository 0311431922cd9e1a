package oracle

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// skewed is one process' clock: how far it really is ahead, and what was measured of that.
type skewed struct{ ahead, measured, wrong time.Duration }

// sourcesOf writes the histories that processes with these clocks keep of events whose times are true.
// They make requests in turns; what gives one back follows it, and is of the same process.
func sourcesOf(t testing.TB, head Header, clocks []skewed, events []Event) (all []Source) {
	t.Helper()
	dir := t.TempDir()
	for g, c := range clocks {
		h := NewHistory(HistoryOptions{Workers: 1})
		late := int64(g) * 1000 // each begins a little later
		takes := 0
		for _, e := range events {
			if e.Kind == Take {
				takes++
			}
			if takes%len(clocks) != g {
				continue
			}
			e.Call = e.Call - late
			e.Reply = e.Reply - late
			if e.Kind != Take && e.TakeCall+e.TakeReply != 0 {
				e.TakeCall = e.TakeCall - late
				e.TakeReply = e.TakeReply - late
			}
			h.Append(0, e)
		}
		own := head
		own.Epoch = head.Epoch.Add(c.ahead + time.Duration(late))
		if head.Policy.Window.Timeline != (quota.Timeline{}) {
			own.Policy.Window.Timeline.Real = head.Policy.Window.Timeline.Real.Add(c.measured)
		}
		name := filepath.Join(dir, fmt.Sprint(g))
		w, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteHistory(w, own, h); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := OpenHistory(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Source{f, c.measured, c.wrong})
	}
	return all
}

func unionOf(t testing.TB, all []Source) *File {
	t.Helper()
	u, err := Union(all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

var someDay = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// TestUnionFindsPlantedLeaks: 7 units that four processes leak together, and none of them by
// itself, come back as certain, with clocks that are off by up to 2 ms.
func TestUnionFindsPlantedLeaks(t *testing.T) {
	const limit, planted = 100, 7
	head := Header{Policy: quota.Policy{Limit: limit, Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}},
		Epoch: someDay.Add(time.Minute)}
	var events []Event
	for i := range int64(2 * limit) {
		e := Event{Call: 1e6 + i*10_000, Reply: 1e6 + i*10_000 + 200_000, Units: 1, Outcome: Rejected}
		if i < limit+planted {
			e.Outcome = Admitted
		}
		events = append(events, e)
	}
	clocks := []skewed{
		{2 * time.Millisecond, 2*time.Millisecond - 90*time.Microsecond, 100 * time.Microsecond},
		{-2 * time.Millisecond, -2*time.Millisecond + 180*time.Microsecond, 180 * time.Microsecond},
		{0, 0, 20 * time.Microsecond}, {time.Millisecond, time.Millisecond, 0},
	}
	all := sourcesOf(t, head, clocks, events)
	for _, f := range all {
		if v, err := f.Judge(); err != nil || v.LeakUnits != 0 {
			t.Errorf("one alone leaks %d, %v", v.LeakUnits, err)
		}
	}
	u := unionOf(t, all)
	v, err := u.Judge()
	if err != nil || v.LeakUnits != planted || v.LeakPossible != planted || v.Admitted.Units != limit+planted ||
		v.FalseRejects != 0 ||
		v.Crossings != 1 || u.Takes != 2*limit {
		t.Errorf("%+v of %+v, %v", v, u.Header, err)
	}
}

// TestClocksCostCertainty: units that leak only if clocks are right are possible, and not certain.
func TestClocksCostCertainty(t *testing.T) {
	head := Header{Policy: quota.Policy{Limit: 10, Window: quota.Window{Kind: quota.Rolling, Length: time.Second}},
		Epoch: someDay}
	var events []Event
	for i := range int64(20) { // 10, and 10 more almost a second later: 4 of them within it for certain
		at := i / 10 * (1e9 - 1e6)
		if i >= 14 {
			at = 1e9 - 1e5
		}
		events = append(events, Event{Call: at, Reply: at + 1000, Units: 1})
	}
	for wrong, want := range map[time.Duration]int64{0: 10, 20 * time.Microsecond: 10, 300 * time.Microsecond: 4,
		2 * time.Millisecond: 0} {
		v, err := unionOf(t, sourcesOf(t, head, []skewed{{0, 0, wrong}, {time.Millisecond, time.Millisecond, wrong}},
			events)).Judge()
		if err != nil || v.LeakUnits != want || v.LeakPossible != 10 {
			t.Errorf("clocks wrong by %v: certain %d and possible %d, %v", wrong, v.LeakUnits, v.LeakPossible, err)
		}
	}
}

// TestUnionIsTheWhole: with clocks that are right, the verdict is that on all events in one
// history, also if groups of subjects are kept in files. With clocks that are wrong within
// their bounds it says nothing else for certain.
func TestUnionIsTheWhole(t *testing.T) {
	r := seeded(61)
	seen := tally{}
	for n := range testenv.Pick(45, 90) {
		kind := []quota.Kind{quota.Standing, quota.Fixed, quota.Rolling}[n%3]
		head := Header{Policy: quota.Policy{Limit: 1 + r.Int64N(5),
			Window: quota.Window{Kind: kind, Length: 20 * time.Microsecond}},
			Epoch: someDay, Initial: map[uint32]int64{1: 1}, Tiers: []string{"redis", "process"}}
		if kind == quota.Standing {
			head.Policy.Window.Length = 0
		}
		events := someEvents(r, 40, kind == quota.Standing)
		whole := Judge(head.Config(), events)
		clocks := make([]skewed, 1+r.IntN(4))
		for i := range clocks {
			ahead := time.Duration(r.Int64N(4e6) - 2e6)
			clocks[i] = skewed{ahead, ahead, 0}
		}
		u := unionOf(t, sourcesOf(t, head, clocks, events))
		u.index.groups, u.index.scatter = 1+r.Int64N(30), t.TempDir()
		v, err := u.Judge()
		seen.note("several groups", len(u.index.grouped()) > 1)
		v.LongestWrong, whole.LongestWrong = 0, 0 // of instances, which are renumbered
		v.LongestTier, whole.LongestTier = 0, 0
		v.Standing.UnitSeconds, whole.Standing.UnitSeconds = 0, 0
		if err != nil || !reflect.DeepEqual(v, whole) {
			t.Fatalf("%s: %+v, %v, should be %+v", kind, v, err, whole)
		}
		if left, _ := os.ReadDir(u.index.scatter); len(left) > 0 {
			t.Fatalf("files left behind: %v", left)
		}
		for i := range clocks {
			clocks[i].wrong = time.Duration(r.Int64N(20_000))
			clocks[i].measured += time.Duration(r.Int64N(2*int64(clocks[i].wrong)+1)) - clocks[i].wrong
		}
		w, err := unionOf(t, sourcesOf(t, head, clocks, events)).Judge()
		if err != nil || w.LeakUnits > whole.LeakUnits || w.LeakPossible < whole.LeakUnits ||
			w.FalseRejects > whole.FalseRejects ||
			w.FalseRejectsPossible < whole.FalseRejects || w.Admitted != whole.Admitted {
			t.Fatalf("%s with clocks %v: %+v, %v, the truth is %+v", kind, clocks, w, err, whole)
		}
		seen.note("less is certain", w.LeakUnits < whole.LeakUnits)
		seen.note("leak", whole.LeakUnits > 0)
	}
	seen.check(t, 5)
}

// someEvents are requests of a few subjects in one after the other's way.
func someEvents(r *rand.Rand, n int, giveBack bool) (out []Event) {
	for range n {
		call := r.Int64N(60_000)
		e := Event{Call: call, Reply: call + r.Int64N(10_000), Units: 1 + r.Int64N(2), Subject: r.Uint32N(4),
			Outcome: Outcome(r.IntN(2)),
			Tier:    uint8(r.IntN(2)), Instance: uint8(r.IntN(2))}
		out = append(out, e)
		if giveBack && e.Outcome == Admitted && r.IntN(3) == 0 {
			at := e.Reply + r.Int64N(10_000)
			out = append(out, Event{Call: at, Reply: at + 100, Units: e.Units, Subject: e.Subject, Kind: Refund,
				TakeCall: e.Call, TakeReply: e.Reply})
		}
	}
	return out
}

// TestUnionTellsTiersAndInstancesApart: each process numbers its own.
func TestUnionTellsTiersAndInstancesApart(t *testing.T) {
	head := Header{Policy: quota.Policy{Limit: 1}, Epoch: someDay, Tiers: []string{"redis", "process"}}
	var events []Event
	for i := range int64(3) {
		events = append(events, Event{Call: i * 1e6, Reply: i*1e6 + 10, Units: 1})
	}
	all := sourcesOf(t, head, make([]skewed, 2), events)
	all[1].Header.Tiers = []string{"process"} // of the first and the third request
	u := unionOf(t, all)
	v, err := u.Judge()
	for number, name := range u.Header.Tiers {
		if v.LeakTiers[uint8(number)] != 1 {
			t.Errorf("%s leaks %d of %v, %v", name, v.LeakTiers[uint8(number)], v.LeakTiers, err)
		}
	}
	for events := range u.Subjects() {
		if len(events) != 3 || events[0].Instance == events[1].Instance || events[0].Instance != events[2].Instance {
			t.Errorf("%+v", events)
		}
	}
}

// TestUnionOfManyInstances: 300 processes have more instances than an event tells apart. What one of the last rejects
// wrongly is no part of another's row.
func TestUnionOfManyInstances(t *testing.T) {
	head := Header{Policy: quota.Policy{Limit: 100}, Epoch: someDay, Initial: map[uint32]int64{0: 1}}
	var events []Event
	for i := range int64(300) {
		events = append(events, Event{Call: i * 1000, Reply: i*1000 + 10, Units: 1, Outcome: Rejected})
	}
	all := sourcesOf(t, head, make([]skewed, 300), events)
	all[7].Header.Initial = map[uint32]int64{0: 100} // one that filled less than was planned knows better
	u := unionOf(t, all)
	v, err := u.Judge()
	if err != nil || v.FalseRejects != 300 || v.LongestWrong != 10 || u.Header.Initial[0] != 1 {
		t.Errorf("%+v of %v, %v", v, u.Header.Initial, err)
	}
}

// TestUnionRefusesOthers: there is no union of histories of several strategies, windows or limits.
func TestUnionRefusesOthers(t *testing.T) {
	head := Header{Policy: quota.Policy{Limit: 1, Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}},
		Epoch: someDay}
	head.Policy.Window.Timeline = quota.Timeline{Real: someDay, Policy: someDay}
	for name, change := range map[string]func(n int, s *Source){
		"strategy": func(n int, s *Source) { s.Header.Strategy = fmt.Sprint(n) },
		"clock":    func(n int, s *Source) { s.Ahead = time.Duration(n) },
		"limit":    func(n int, s *Source) { s.Header.Policy.Limit += int64(n) },
	} {
		all := sourcesOf(t, head, make([]skewed, 3), nil)
		for n := range all {
			change(n, &all[n])
		}
		if _, err := Union(all...); err == nil ||
			!strings.Contains(err.Error(), "are not of one run, or had different windows") {
			t.Errorf("another %s: %v", name, err)
		}
	}
}
