package oracle

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// one is a request that took one nanosecond.
func one(subject uint32, at, units int64, o Outcome) Event {
	return Event{Subject: subject, Call: at, Reply: at + 1, Units: units, Outcome: o}
}

var month = quota.Window{Kind: quota.CalendarMonth}

// TestPlantedLeak: 7 units over a limit of 100 on one subject of 50, in the
// second of two months.
func TestPlantedLeak(t *testing.T) {
	epoch := time.Date(2026, time.February, 28, 23, 59, 59, 0, time.UTC)
	cfg := Config{Window: month, Limit: 100, Epoch: epoch}
	var history []Event
	for s := range uint32(50) {
		for _, from := range []int64{0, int64(time.Second)} { // the second is 1 March, 00:00
			for i := range int64(200) {
				o := Rejected
				if i < 100 || s == 17 && from > 0 && i < 107 {
					o = Admitted
				}
				history = append(history, one(s, from+10*i, 1, o))
			}
		}
	}
	v := Judge(cfg, history)
	want := Verdict{
		Issued: amount{20_000, 20_000}, Admitted: amount{10_007, 10_007}, Rejected: amount{9_993, 9_993},
		LeakUnits: 7, LeakPossible: 7, LeakWorst: 7, LeakPossibleWorst: 7, LeakedRequests: 7,
		LeakTiers: map[uint8]int64{0: 7}, LeakSubjects: 1,
		Crossings: 100, LeakWindows: 1, OverOffered: 10_000, MaxDeciding: 1, MaxInFlight: 1, MaxCost: 1, MaxOffered: 200,
		Linear: Linear{Decided: true},
	}
	if n := len(v.Windows); n != 100 {
		t.Errorf("%d subject-windows", n)
	}
	leaks := slices.Clone(v.CrossingLeaks)
	slices.Sort(leaks)
	if len(leaks) != 100 || leaks[99] != 7 || leaks[98] != 0 {
		t.Errorf("leaks of the crossings: %v", leaks)
	}
	if v.Touched.Windows != 100 {
		t.Errorf("touched %+v", v.Touched)
	}
	v.Windows = nil
	v.CrossingLeaks = nil
	v.Touched = want.Touched
	if !reflect.DeepEqual(v, want) {
		t.Errorf("got  %+v\nwant %+v", v, want)
	}
	// The order in which events are handed in does not matter.
	a := Judge(cfg, history)
	slices.Reverse(history)
	if b := Judge(cfg, history); !reflect.DeepEqual(a, b) {
		t.Errorf("in reverse %+v\nand before %+v", b, a)
	}
}

// TestPlantedFalseRejects: 2 % of requests far below the limit.
func TestPlantedFalseRejects(t *testing.T) {
	for _, w := range []quota.Window{{}, month, {Kind: quota.Rolling, Length: time.Hour}} {
		var history []Event
		for i := range int64(10_000) {
			o := Admitted
			if i%50 == 7 {
				o = Rejected
			}
			history = append(history, one(uint32(i%4), 10*i, 3, o))
		}
		v := Judge(Config{Window: w, Limit: 10_000, Epoch: time.Unix(1_000_000, 0)}, history)
		if v.FalseRejects != 200 || v.FalseRejectsPossible != 200 || v.FalseRejectUnits != 600 || v.LeakPossible != 0 {
			t.Errorf("%s: %d false rejects of %d units, %d possible", w.Kind, v.FalseRejects, v.FalseRejectUnits,
				v.FalseRejectsPossible)
		}
	}
}

// TestCases are histories small enough to judge by eye.
func TestCases(t *testing.T) {
	type result struct {
		leak, possible, requests, leakWindows, crossings, over, falseRejects int64
	}
	second := int64(time.Second)
	rolling := quota.Window{Kind: quota.Rolling, Length: 100}
	refund := func(at, units int64) Event { return Event{Kind: Refund, Call: at, Reply: at + 1, Units: units} }
	settle := func(at, units int64) Event { return Event{Kind: Commit, Call: at, Reply: at + 1, Units: units} }
	for _, c := range []struct {
		name    string
		window  quota.Window
		limit   int64
		initial int64
		events  []Event
		want    result
	}{
		{"nothing", month, 5, 0, nil, result{}},
		{"two of six units", month, 10, 0, []Event{one(0, 0, 6, 0), one(0, 10, 6, 0)}, result{2, 2, 1, 1, 1, 2, 0}},
		{"one unit each of the two last", month, 10, 0, []Event{one(0, 0, 10, 0), one(0, 10, 1, 0), one(0, 20, 1, 0)},
			result{2, 2, 2, 1, 1, 2, 0}},
		{"a full subject", month, 10, 10, []Event{one(0, 0, 3, Rejected), one(0, 10, 1, 0)}, result{1, 1, 1, 1, 1, 4, 0}},
		{"more than full", month, 10, 12, []Event{one(0, 10, 1, 0)}, result{1, 1, 1, 1, 1, 1, 0}},
		{"larger than the limit", month, 10, 0, []Event{one(0, 0, 11, Rejected)}, result{0, 0, 0, 0, 1, 1, 0}},
		{"a timeout holds nothing", month, 1, 0, []Event{one(0, 0, 1, Failed), one(0, 10, 1, 0)}, result{over: 1}},
		{"a timeout does not excuse", month, 1, 0, []Event{one(0, 0, 1, Failed), one(0, 10, 1, Rejected)},
			result{over: 1, falseRejects: 1}},
		{"across the boundary", month, 1, 0, []Event{{Call: 0, Reply: second, Units: 1}, one(0, second+10, 1, 0)},
			result{possible: 1}},
		{"into a full window", month, 1, 0,
			[]Event{one(0, 0, 1, 0), {Call: 5, Reply: second, Units: 1}, one(0, second+10, 1, 0)}, result{1, 1, 1, 1, 2, 1, 0}},
		{"given back in time", quota.Window{}, 1, 0, []Event{one(0, 0, 1, 0), refund(5, 1), one(0, 10, 1, 0)},
			result{crossings: 1}},
		{"given back too late", quota.Window{}, 1, 0, []Event{one(0, 0, 1, 0), one(0, 10, 1, 0), refund(15, 1)},
			result{1, 1, 1, 1, 1, 1, 0}},
		{"given back while asked", quota.Window{}, 1, 0,
			[]Event{one(0, 0, 1, 0), {Kind: Refund, Call: 5, Reply: 15, Units: 1}, one(0, 8, 1, 0)},
			result{possible: 1, crossings: 1}},
		{"settled lower", quota.Window{}, 10, 0, []Event{one(0, 0, 10, 0), settle(5, 4), one(0, 10, 4, 0)},
			result{crossings: 1}},
		{"settled higher is no leak", quota.Window{}, 10, 0, []Event{one(0, 0, 10, 0), settle(5, -4)}, result{possible: 4}},
		{"two excursions", quota.Window{}, 1, 0, []Event{one(0, 0, 1, 0), one(0, 10, 1, 0), refund(15, 1), one(0, 20, 1, 0)},
			result{1, 1, 1, 1, 1, 1, 0}},
		{"given back of the window before", month, 1, 0,
			[]Event{one(0, 0, 1, 0), refund(second+1, 1), one(0, second+10, 1, 0), one(0, second+20, 1, 0)},
			result{1, 1, 1, 1, 1, 1, 0}},
		{"larger than the limit, after a refund", month, 1, 0,
			[]Event{one(0, 0, 1, 0), refund(second+1, 1), one(0, second+10, 2, Rejected)}, result{crossings: 1, over: 2}},
		{"rolling, beside one that hangs", rolling, 1, 0,
			[]Event{{Call: 0, Reply: 300, Units: 1}, one(0, 150, 1, 0), one(0, 160, 1, 0)}, result{1, 2, 1, 1, 1, 1, 0}},
		{"rolling, leaving out the longest", rolling, 1, 0,
			[]Event{{Call: 0, Reply: 50, Units: 1}, one(0, 10, 1, 0), one(0, 120, 1, 0)}, result{1, 1, 1, 1, 1, 1, 0}},
		{"rolling, apart", rolling, 1, 0, []Event{one(0, 0, 1, 0), one(0, 101, 1, 0)}, result{}},
		{"rolling, together", rolling, 1, 0, []Event{one(0, 0, 1, 0), one(0, 98, 1, 0)}, result{1, 1, 1, 1, 1, 1, 0}},
		{"rolling, perhaps together", rolling, 1, 0, []Event{one(0, 0, 1, 0), one(0, 100, 1, 0)}, result{possible: 1}},
		{"rolling, twice", rolling, 1, 0, []Event{one(0, 0, 2, 0), one(0, 150, 3, 0)}, result{3, 3, 2, 2, 2, 3, 0}},
		{"rolling, full at the epoch", rolling, 2, 2, []Event{one(0, 50, 1, 0), one(0, 120, 1, Rejected)},
			result{1, 1, 1, 1, 1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Judge(Config{
				Window: c.window, Limit: c.limit, Epoch: time.Date(2026, time.January, 31, 23, 59, 59, 0, time.UTC),
				Initial: func(uint32) int64 { return c.initial },
			}, c.events)
			got := result{v.LeakUnits, v.LeakPossible, v.LeakedRequests, v.LeakWindows, v.Crossings, v.OverOffered,
				v.FalseRejects}
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestNeverRoomForMoreThanTheLimit: also if a refund that belongs to another
// window takes the lower bound below zero.
func TestNeverRoomForMoreThanTheLimit(t *testing.T) {
	cfg := tumblingConfig(1, 0)
	v := Judge(cfg, []Event{
		one(0, 0, 1, Admitted), {Kind: Refund, Call: width, Reply: width + 1, Units: 1}, one(0, width+3, 2, Rejected),
	})
	if v.FalseRejectsPossible != 0 {
		t.Errorf("%+v", v)
	}
}

func TestStandingArea(t *testing.T) {
	second := int64(time.Second)
	v := Judge(Config{Limit: 10}, []Event{
		{Call: 0, Reply: second, Units: 14},                            // 4 above from 1 s
		{Kind: Expire, Call: 3 * second, Reply: 3 * second, Units: 14}, // to 3 s
		{Call: 4 * second, Reply: 5 * second, Units: 11},               // 1 above from 5 s
		{Subject: 1, Call: 0, Reply: 7 * second, Units: 1},             // to the end of the history
	})
	if v.Standing.Excursions != 2 || !(math.Abs(v.Standing.UnitSeconds-10) <= 1e-9) {
		t.Errorf("%+v, should be 2 excursions of 8 + 2 unit-seconds", v.Standing)
	}
}

func TestMalformedEventsAreCounted(t *testing.T) {
	v := Judge(Config{Limit: 1}, []Event{
		one(0, 0, 1, Admitted),
		{Call: 5, Reply: 4, Units: 1}, {Units: -1}, {Kind: kinds}, {Outcome: outcomes}, {Call: math.MinInt64},
		{Reply: math.MaxInt64},
	})
	if v.Malformed != 6 || v.Issued.Requests != 1 {
		t.Errorf("%d malformed, %d issued", v.Malformed, v.Issued.Requests)
	}
}

// shares reports whether two takes have one interval, so that nothing tells whose settlement one is.
func shares(ops []operation) bool {
	seen := map[interval]bool{}
	for _, o := range ops {
		take := interval{o.Call, o.Reply}
		if o.admitted() && seen[take] {
			return true
		}
		seen[take] = seen[take] || o.admitted()
	}
	return false
}

// TestMaxInFlight: against counting at every moment. A request that is settled is in flight until then.
func TestMaxInFlight(t *testing.T) {
	r := seeded(8)
	for i := range 1000 {
		g := generator{Rand: r, span: 30, length: 12, cost: 1, refunds: i%2 == 0, commits: true, expiries: true}
		ops := g.history(1 + r.IntN(8))
		ends := make([]int64, len(ops))
		for k, o := range ops {
			ends[k] = o.Reply
		}
		for _, o := range slices.Backward(ops) { // the first of them counts
			if o.of >= 0 {
				ends[o.of] = o.Reply
			}
		}
		want := int64(0)
		deciding := int64(0)
		for m := range int64(200) {
			n := int64(0)
			d := int64(0)
			for k, o := range ops {
				if o.Kind == Take && o.Call <= m && m <= o.Reply {
					d++
				}
				if o.Kind == Take && o.Call <= m && m <= ends[k] {
					n++
				}
			}
			want = max(want, n)
			deciding = max(deciding, d)
		}
		v := Judge(standingConfig(1, 0), events(ops))
		if v.MaxInFlight < want || v.MaxDeciding != deciding || v.MaxInFlight > want && !shares(ops) {
			t.Fatalf("%d in flight, %d being decided, should be %d and %d%s", v.MaxInFlight, v.MaxDeciding, want, deciding,
				explain(ops))
		}
	}
}

// TestPlantedRoom: of a limit of 10, one month has 6 units left that were asked for 50 times, one
// has 3 that were asked for twice, and one gives its room to a later request.
func TestPlantedRoom(t *testing.T) {
	for name, plant := range map[string]struct {
		refused, later int64 // after 4 admitted ones
		want           int64
	}{"often": {50, 0, 6}, "few": {2, 3, 2}, "none left": {50, 6, 0}} {
		var history []Event
		add := func(n int64, o Outcome) {
			for range n {
				history = append(history, one(1, 10*int64(len(history)), 1, o))
			}
		}
		add(4, Admitted)
		add(plant.refused, Rejected)
		add(plant.later, Admitted)
		epoch := time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)
		v := Judge(Config{Window: month, Limit: 10, Epoch: epoch}, history)
		if v.NeverGiven != plant.want || v.FalseRejects != plant.refused {
			t.Errorf("%s: %d units never given, %d false rejects, want %d and %d", name, v.NeverGiven, v.FalseRejects,
				plant.want, plant.refused)
		}
	}
}

// TestPlantedRoomUnderChanges: room that a raised limit made, or that a lowered one took away later. The limit is 10,
// from instant 1,000 on as stated, and 10 again from 2,000 on.
func TestPlantedRoomUnderChanges(t *testing.T) {
	type plant struct {
		at, n int64
		out   Outcome
	}
	for name, c := range map[string]struct {
		limit, want int64
		plants      []plant
	}{
		"refused after it was raised":       {30, 20, []plant{{0, 10, Admitted}, {1500, 50, Rejected}}},
		"given to others in part":           {30, 15, []plant{{0, 10, Admitted}, {1500, 50, Rejected}, {1600, 5, Admitted}}},
		"given to all others":               {30, 0, []plant{{0, 10, Admitted}, {1500, 50, Rejected}, {1600, 20, Admitted}}},
		"refused before it was raised":      {30, 6, []plant{{0, 4, Admitted}, {100, 50, Rejected}, {1500, 20, Admitted}}},
		"then given to others in part":      {30, 3, []plant{{0, 4, Admitted}, {100, 50, Rejected}, {1500, 23, Admitted}}},
		"refused before and after":          {30, 26, []plant{{0, 4, Admitted}, {100, 50, Rejected}, {1500, 50, Rejected}}},
		"rightly refused, then nothing":     {30, 0, []plant{{0, 10, Admitted}, {100, 50, Rejected}}},
		"refused before it was lowered":     {5, 6, []plant{{0, 4, Admitted}, {100, 50, Rejected}}},
		"lowered, then given up to it":      {5, 0, []plant{{0, 4, Admitted}, {100, 50, Rejected}, {1500, 1, Admitted}}},
		"raised, refused and lowered again": {30, 20, []plant{{0, 10, Admitted}, {1500, 50, Rejected}, {2500, 50, Rejected}}},
	} {
		var history []Event
		for _, p := range c.plants {
			for i := range p.n {
				history = append(history, one(1, p.at+i, 1, p.out))
			}
		}
		v := Judge(Config{Window: month, Limit: 10, Changes: []LimitChange{{1000, 1000, c.limit}, {2000, 2000, 10}},
			Epoch: time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)}, history)
		if v.NeverGiven != c.want {
			t.Errorf("%s: %d units never given, want %d", name, v.NeverGiven, c.want)
		}
	}
}

// TestPlantedRollingRoom: what could have been given besides the admitted requests, of 10 units in any 100 ns.
func TestPlantedRollingRoom(t *testing.T) {
	type plant struct {
		at, n int64
		out   Outcome
		want  int64 // that were never given, with all before
	}
	for name, plants := range map[string][]plant{
		"no more than there was room for": {{0, 4, Admitted, 0}, {10, 50, Rejected, 6}},
		"no more than was asked for":      {{0, 4, Admitted, 0}, {10, 2, Rejected, 2}},
		"given to others later":           {{0, 4, Admitted, 0}, {10, 50, Rejected, 6}, {90, 6, Admitted, 0}},
		"given to others in part":         {{0, 4, Admitted, 0}, {10, 50, Rejected, 6}, {90, 5, Admitted, 1}},
		"again when the first have left":  {{0, 10, Rejected, 10}, {99, 10, Rejected, 10}, {105, 10, Rejected, 20}},
		"rightly refused":                 {{0, 10, Admitted, 0}, {50, 10, Rejected, 0}, {150, 3, Rejected, 3}},
		"given when the refused had left": {{0, 10, Rejected, 10}, {150, 10, Admitted, 10}},
	} {
		var history []Event
		for i, p := range plants {
			for range p.n {
				history = append(history, one(1, p.at, 1, p.out))
			}
			if v := Judge(Config{Window: quota.Window{Kind: quota.Rolling, Length: 100}, Limit: 10},
				history); v.NeverGiven != p.want {
				t.Errorf("%s: %d units never given after step %d, want %d", name, v.NeverGiven, i, p.want)
			}
		}
	}
	large := []Event{{Call: 0, Reply: 0, Units: 4}, {Call: 10, Reply: 10, Units: 7, Outcome: Rejected},
		{Call: 20, Reply: 20, Units: 5, Outcome: Rejected}}
	if v := Judge(Config{Window: quota.Window{Kind: quota.Rolling, Length: 100}, Limit: 10}, large); v.NeverGiven != 5 {
		t.Errorf("%d units never given, want the one request of 5 that fitted", v.NeverGiven)
	}
}

// TestRollingRoomIsThere: whatever else is admitted, what was never given fits besides it in some order of the
// requests.
func TestRollingRoomIsThere(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(11)
	for range 2000 {
		var history []Event
		for at := int64(0); at < 60; at += 1 + r.Int64N(9) {
			history = append(history, one(1, at, 1, []Outcome{Admitted, Rejected}[r.IntN(2)]))
		}
		const limit, length = 2, 20
		v := Judge(Config{Window: quota.Window{Kind: quota.Rolling, Length: length}, Limit: limit}, history)
		if v.LeakPossible > 0 {
			continue
		}
		// The most that any choice of the rejected gives, without a window over the limit.
		most := int64(0)
		for choice := range 1 << len(history) {
			taken := []int64{}
			n := int64(0)
			for i, e := range history {
				if chosen := choice>>i&1 == 1; e.Outcome == Admitted || chosen {
					taken = append(taken, e.Call)
					if chosen && e.Outcome == Admitted {
						n = -100
					}
					n += int64(choice >> i & 1)
				}
			}
			for i := limit; i < len(taken); i++ {
				if taken[i]-taken[i-limit] <= length {
					n = 0
				}
			}
			most = max(most, n)
		}
		if v.NeverGiven > most {
			t.Fatalf("%d units never given, and only %d fit: %+v", v.NeverGiven, most, history)
		}
	}
}
