package oracle

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// figures_test checks those figures that the other tests only bound against plain
// definitions.

// behind is what must lie in the rolling window that ends at the moment m
// (doubled), by definition, over the limit: at most what was not there from the
// start.
func behind(ops []operation, m, length, limit, initial int64, counts func(operation) bool) int64 {
	used := int64(0)
	there := int64(0)
	if m >= 1 && m < 2*length {
		there = initial
		used = initial
	}
	for _, o := range ops {
		if counts(o) && 2*o.Reply+1 <= m && 2*(o.Call+length) > m {
			used += o.Units
		}
		if o.of >= 0 && o.Units > 0 {
			t := ops[o.of]
			if m >= max(2*o.Call, 2*t.Reply+1) && m < 2*(t.Call+length) {
				used -= o.Units
			}
		}
	}
	return used - max(limit, there)
}

// disjoint is the largest sum of excesses of windows that do not overlap, trying
// every moment.
func disjoint(excess func(m int64) int64, from, to, length int64) (sum, worst int64) {
	best := make([]int64, to-from+1)
	for i := range best {
		e := max(0, excess(from+int64(i)))
		worst = max(worst, e)
		best[i] = e + best[max(0, i-int(2*length))] // nothing lies near the beginning
		best[i] = max(best[i], best[max(0, i-1)])
	}
	return best[len(best)-1], worst
}

// TestRollingFigures: the sum of disjoint excesses, what was over-offered and the
// crossings, of histories with and without give-backs.
func TestRollingFigures(t *testing.T) {
	testenv.Sequential(t)
	const length = 6
	r := seeded(41)
	seen := tally{}
	for i := range 1000 {
		g := generator{Rand: r, span: 10 + r.Int64N(40), length: 1 + r.Int64N(4), cost: 1 + r.Int64N(2),
			early: 8 * r.Int64N(2)}
		g.refunds = i%2 == 0
		if g.refunds {
			g.early = 0
		}
		ops := g.history(2 + r.IntN(12))
		for k := range ops {
			if ops[k].rejected() && r.IntN(3) == 0 {
				ops[k].Outcome = Failed
			}
		}
		limit := 1 + r.Int64N(3)
		initial := r.Int64N(4)
		v := Judge(rollingConfig(limit, initial), events(ops))
		gaveBack := slices.ContainsFunc(ops, func(o operation) bool { return o.Kind != Take })
		admitted := func(o operation) bool { return o.admitted() }
		leak, worst := disjoint(func(m int64) int64 {
			return behind(ops, m, length, limit, initial, admitted)
		}, -60, 300, length)
		plain := slices.DeleteFunc(slices.Clone(ops), func(o operation) bool { return o.Kind != Take })
		asked, _ := disjoint(func(m int64) int64 {
			return behind(plain, m, length, limit, initial, func(operation) bool { return true })
		}, -60, 300, length)
		answered, _ := disjoint(func(m int64) int64 {
			return behind(plain, m, length, limit, initial, func(o operation) bool { return o.Outcome != Failed })
		}, -60, 300, length)
		over := asked
		if gaveBack {
			over = leak + v.Rejected.Units - v.FalseRejectUnits
		}
		sum := int64(0)
		for _, l := range v.CrossingLeaks {
			sum += l
		}
		if v.LeakUnits != leak || v.LeakWorst != worst || v.OverOffered != over ||
			(v.Crossings > 0) != (answered > 0 || leak > 0) ||
			sum != leak || int64(len(v.CrossingLeaks)) != v.Crossings || v.LeakWindows > v.Crossings ||
			v.Windows[0].GaveBack != gaveBack {
			t.Fatalf("limit %d, initial %d: leak %d worst %d over %d crossings %d %v; should be %d worst %d over %d "+
				"answered %d%s", limit, initial,
				v.LeakUnits, v.LeakWorst, v.OverOffered, v.Crossings, v.CrossingLeaks, leak, worst, over, answered, explain(ops))
		}
		if g.cost == 1 && !gaveBack && v.LeakedRequests != leak {
			t.Fatalf("%d requests leaked, should be %d%s", v.LeakedRequests, leak, explain(ops))
		}
		if v.LeakedRequests > v.LeakUnits || (v.LeakedRequests == 0) != (leak == 0) {
			t.Fatalf("%d requests leaked %d units", v.LeakedRequests, leak)
		}
		seen.note("leak", leak > 0)
		seen.note("several windows", v.LeakWindows > 1)
		seen.note("answered but not leaked", answered > 0 && leak == 0)
	}
	seen.check(t, 30)
}

// TestRollingPacking: the bound above the possible leak is what does not fit of
// the units, each of which takes up room wherever it may lie; by trying every
// subset.
func TestRollingPacking(t *testing.T) {
	const length = 6
	r := seeded(42)
	seen := tally{}
	for range 1200 {
		g := generator{Rand: r, span: 24, length: 1 + r.Int64N(5), cost: 1, early: 12 * r.Int64N(2)}
		ops := slices.DeleteFunc(g.history(2+r.IntN(6)), func(o operation) bool { return !o.admitted() })
		if len(ops) == 0 {
			continue
		}
		limit := 1 + r.Int64N(3)
		initial := r.Int64N(4)
		v := Judge(rollingConfig(limit, initial), events(ops))
		most := int64(0)
		for set := range 1 << len(ops) {
			n := int64(0)
			fits := true
			for m := int64(-20); m < 40 && fits; m++ {
				load := int64(0)
				if m >= 0 && m < length {
					load = min(initial, limit)
				}
				n = 0
				for i, o := range ops {
					if set>>i&1 == 1 {
						n++
						load += b2i(o.Call <= m && m < o.Reply+length)
					}
				}
				fits = load <= limit
			}
			if fits {
				most = max(most, n)
			}
		}
		want := max(v.LeakUnits, int64(len(ops))-most)
		if v.LeakPossible != want {
			t.Fatalf("limit %d, initial %d: possible leak %d, should be %d%s", limit, initial, v.LeakPossible, want,
				explain(ops))
		}
		seen.note("leak", want > 0)
		seen.note("before the epoch", ops[0].Call < 0)
		seen.note("initial units", initial > 0 && want > 0)
	}
	seen.check(t, 80)
}

// TestOverOffered under the policies whose windows do not roll.
func TestOverOffered(t *testing.T) {
	refund := Event{Kind: Refund, Call: 6, Reply: 7, Units: 2, TakeReply: 1}
	rejected := one(0, 8, 3, Rejected)
	for _, c := range []struct {
		name           string
		limit, initial int64
		events         []Event
		want           int64
	}{
		{"all within", 9, 1, []Event{one(0, 0, 4, Admitted), one(0, 2, 4, Rejected)}, 0},
		{"one over", 8, 1, []Event{one(0, 0, 4, Admitted), one(0, 2, 4, Rejected)}, 1},
		{"no more than was asked", 1, 50, []Event{one(0, 0, 4, Admitted), one(0, 2, 4, Failed)}, 8},
		{"given back, rejected rightly", 4, 0, []Event{one(0, 0, 2, Admitted), one(0, 2, 2, Admitted), refund, rejected}, 3},
		{"given back, rejected wrongly", 6, 0, []Event{one(0, 0, 2, Admitted), refund, rejected}, 0},
		{"given back, leaked", 1, 0, []Event{one(0, 0, 2, Admitted), one(0, 2, 2, Admitted), refund, rejected}, 6},
	} {
		for name, cfg := range map[string]Config{"standing": standingConfig(c.limit, c.initial),
			"tumbling": tumblingConfig(c.limit, c.initial)} {
			cfg.Window.Length *= 10
			if v := Judge(cfg, c.events); v.OverOffered != c.want {
				t.Errorf("%s, %s: %d, should be %d", name, c.name, v.OverOffered, c.want)
			}
		}
	}
}

// TestLimitsOfWellFormed: the last moments and the least units that are judged.
func TestLimitsOfWellFormed(t *testing.T) {
	v := Judge(Config{Limit: 1}, []Event{
		{Call: -maxTime, Reply: maxTime}, {Kind: Commit, Units: -1}, {Kind: Refund, Units: 0},
		{Call: -maxTime - 1}, {Reply: maxTime + 1}, {Kind: Refund, Units: -1}, {Kind: Expire, Units: -1},
	})
	if v.Malformed != 4 || v.Issued.Requests != 1 {
		t.Errorf("%d malformed, %d issued", v.Malformed, v.Issued.Requests)
	}
}

// TestCellCounts: what ended without holding units leaves room, and initial units
// were not asked for.
func TestCellCounts(t *testing.T) {
	var c Cell
	c.Fill(2)
	c.Begin(1)
	c.Fail(1)
	if mark := c.Begin(1); !c.Reject(1, mark, 3) {
		t.Error("a rejection beside 2 of 3 units and one that failed is called right")
	}
	if mark := c.Begin(1); !c.Reject(1, mark, 3) {
		t.Error("a rejection beside 2 of 3 units and two that came to nothing is called right")
	}
	c.Begin(1)
	c.Admit(1)
	if mark := c.Begin(1); c.Reject(1, mark, 3) {
		t.Error("a rejection beside 3 of 3 units is called wrong")
	}
	want := cellTally{Initial: 2, Asked: 5, Admitted: 1, FalseRejects: 2}
	if got := c.Tally(); got != want {
		t.Errorf("%+v, should be %+v", got, want)
	}
}

// TestAgreeShortens: of many disagreements five are shown.
func TestAgreeShortens(t *testing.T) {
	cfg := standingConfig(1, 0)
	for n, want := range map[int]string{5: "in 5 places", 6: "and 1 more", 8: "and 3 more"} {
		var history []Event
		for s := range n {
			history = append(history, one(uint32(s), 0, 1, Admitted))
		}
		err := Agree(Judge(cfg, history), cfg, func(func(Key, *Cell) bool) {})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "more") != (n > 5) {
			t.Errorf("%d: %v", n, err)
		}
	}
	// A window that a request only passed through has no cell.
	crossing := tumblingConfig(5, 0)
	w := crossing.Window.At(crossing.Epoch).Index
	c := new(Cell)
	c.Begin(1)
	c.Admit(1)
	c.Crossed()
	v := Judge(crossing, []Event{{Call: 0, Reply: width, Units: 1}})
	if err := Agree(v, crossing, func(yield func(Key, *Cell) bool) { yield(Key{Index: w}, c) }); err != nil {
		t.Error(err)
	}
}

// TestExplained: taken together, rejections are explained unless one is wrong for
// certain or something cannot be decided.
func TestExplained(t *testing.T) {
	overlapping := Event{Call: 0, Reply: 9, Units: 1, Outcome: Rejected}
	for _, c := range []struct {
		name      string
		events    []Event
		explained bool
		certain   int64
	}{
		{"rejected while the last unit was taken", []Event{one(0, 0, 1, Admitted), overlapping}, true, 0},
		{"rejected before", []Event{one(0, 10, 1, Admitted), overlapping}, false, 1},
		{"two units", []Event{one(0, 0, 2, Admitted), overlapping}, false, 0},
		{"a failure", []Event{one(0, 0, 1, Admitted), one(0, 0, 1, Failed), overlapping}, false, 0},
		{"given back", []Event{one(0, 0, 1, Admitted), {Kind: Refund, Call: 12, Reply: 13, Units: 1, TakeReply: 1},
			overlapping}, false, 0},
	} {
		v := Judge(standingConfig(1, 0), c.events)
		certain, possible, exercised := v.Broken(quota.PropertyFalseReject)
		if v.Explained() != c.explained || certain != c.certain || !exercised ||
			(possible == certain) != (c.explained || c.certain == 1) {
			t.Errorf("%s: explained %v, %d..%d, exercised %v", c.name, v.Explained(), certain, possible, exercised)
		}
	}
	leaky := Judge(standingConfig(1, 0), []Event{one(0, 0, 1, Admitted), one(0, 2, 2, Admitted)})
	if certain, possible, exercised := leaky.Broken(quota.PropertyLeak); certain != 2 || possible != 2 || !exercised {
		t.Errorf("leak %d..%d, exercised %v", certain, possible, exercised)
	}
	calm := Judge(standingConfig(1, 0), []Event{one(0, 0, 1, Failed)})
	if _, _, exercised := calm.Broken(quota.PropertyFalseReject); exercised {
		t.Error("only failures exercise false rejects")
	}
	if _, _, exercised := calm.Broken(quota.PropertyLeak); exercised {
		t.Error("nothing over the limit exercises leaks")
	}
	if _, _, exercised := leaky.Broken("colour"); exercised {
		t.Error("an unknown property is exercised")
	}
}

// TestWindowsAtTheirEnds: a moment belongs to the window that begins with it, and
// the one found last is found again only for its own moments.
func TestWindowsAtTheirEnds(t *testing.T) {
	cfg := tumblingConfig(1, 0)
	s := spans{window: cfg.Window, epoch: cfg.Epoch}
	for _, m := range []int64{0, width - offset - 1, width - offset, 2*width - offset, 2*width - offset - 1, -offset,
		-offset - 1, math.MinInt64 / 8} {
		fresh := spans{window: cfg.Window, epoch: cfg.Epoch}
		if got, want := s.at(m), fresh.at(m); got != want || m < got.start || m >= got.end {
			t.Errorf("%d: %+v, should be %+v", m, got, want)
		}
		w := s.last
		if next := s.after(w); next.index != w.index+1 || next.start != w.end || s.after(w) != next {
			t.Errorf("after %+v comes %+v", w, next)
		}
	}
}

// TestEpochAtABoundary: initial units belong to the window that begins with the
// epoch, and not to the one that ends with it.
func TestEpochAtABoundary(t *testing.T) {
	cfg := tumblingConfig(2, 2)
	cfg.Epoch = cfg.Epoch.Add(-offset)
	for _, c := range []struct{ at, leak int64 }{{-5, 0}, {0, 1}, {width - 2, 1}, {width, 0}} {
		if v := Judge(cfg, []Event{one(0, c.at, 1, Admitted)}); v.LeakUnits != c.leak {
			t.Errorf("a take at %d leaks %d, should leak %d", c.at, v.LeakUnits, c.leak)
		}
		want, _, err := Expect(cfg, 0, nil, Reading{c.at, c.at}, quota.CountsAdmitted)
		if err != nil || want.Units.Lo != 2*c.leak || want.Units.Hi != 2*c.leak {
			t.Errorf("a counter read at %d: %+v, %v", c.at, want, err)
		}
	}
}

// TestGiveBackAtABoundary: one that is called at the first moment of a window
// belongs to it only if its take may have been charged to it.
func TestGiveBackAtABoundary(t *testing.T) {
	const second = width - offset // first moment of the second window
	refund := func(call, takeCall, takeReply int64) Event {
		return Event{Kind: Refund, Call: call, Reply: call, Units: 1, TakeCall: takeCall, TakeReply: takeReply}
	}
	take := func(call, reply int64) Event { return Event{Call: call, Reply: reply, Units: 1} }
	later := one(0, second+3, 1, Admitted)
	for _, c := range []struct {
		name     string
		events   []Event
		leak     int64
		gaveBack bool // of the second window
		crossed  bool
	}{
		{"of the window before", []Event{take(0, 1), take(second, second), refund(second, 0, 1), later}, 1, false, false},
		{"of a take at the first moment", []Event{take(second, second), refund(second+1, second, second), later}, 0, true,
			false},
		{"of a take answered at the first moment",
			[]Event{take(second-1, second), refund(second, second-1, second), take(second+1, second+1), later}, 1, true, true},
		{"of a take answered at the last moment",
			[]Event{take(second-1, second-1), take(second+1, second+1), refund(second+2, second-1, second-1), later}, 1, false,
			false},
		{"called at the last moment of the window of its reply", []Event{
			take(second-2, second), refund(second+width-1, second-2, second), take(second+1, second+1), take(second-2, second-2),
		}, 0, true, true},
		{"called at the first moment of the next", []Event{
			take(second-2, second), refund(second+width, second-2, second), take(second+1, second+1), take(second-2, second-2),
		}, 1, false, true},
	} {
		v := Judge(tumblingConfig(1, 0), c.events)
		w := v.Windows[len(v.Windows)-1]
		if v.LeakUnits != c.leak || w.GaveBack != c.gaveBack || w.Crossed != c.crossed {
			t.Errorf("%s: leak %d, gave back %v, crossed %v: %+v", c.name, v.LeakUnits, w.GaveBack, w.Crossed, v.Windows)
		}
	}
}

// TestLeakedRequests: those answered last, at the first of several equal peaks,
// and none that asked for nothing.
func TestLeakedRequests(t *testing.T) {
	refund := Event{Kind: Refund, Call: 10, Reply: 11, Units: 2, TakeCall: 6, TakeReply: 7}
	for _, c := range []struct {
		name   string
		events []Event
		want   int64
	}{
		{"one of two units", []Event{one(0, 0, 2, Admitted), one(0, 6, 2, Admitted)}, 1},
		{"two of one unit", []Event{one(0, 0, 2, Admitted), one(0, 4, 1, Admitted), one(0, 6, 1, Admitted)}, 2},
		{"the first peak", []Event{one(0, 0, 2, Admitted), one(0, 6, 2, Admitted), refund, one(0, 12, 1, Admitted),
			one(0, 14, 1, Admitted)}, 1},
		{"nothing asked for", []Event{one(0, 0, 3, Admitted), one(0, 6, 0, Admitted)}, 1},
		{"nothing asked for in between", []Event{one(0, 0, 3, Admitted), one(0, 6, 0, Admitted), one(0, 8, 1, Admitted)}, 2},
	} {
		if v := Judge(standingConfig(2, 0), c.events); v.LeakedRequests != c.want {
			t.Errorf("%s: %d requests, should be %d", c.name, v.LeakedRequests, c.want)
		}
	}
}

// TestPlantedLeakOfTiers: of a limit of 2, tier 1 admits 2 units, tier 2 three and tier 3 four more: their 7 leaked, in
// whichever order the history has them. Of a request that leaks in part, the part counts.
func TestPlantedLeakOfTiers(t *testing.T) {
	of := func(at, units int64, tier uint8) Event {
		e := one(0, at, units, Admitted)
		e.Tier = tier
		return e
	}
	epoch := time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)
	for _, k := range []quota.Window{{Kind: quota.Standing}, {Kind: quota.CalendarMonth},
		{Kind: quota.Rolling, Length: time.Second},
		{Kind: quota.FirstRequest, Length: time.Second}, {Kind: quota.Bucket, Length: time.Hour}} {
		cfg := Config{Window: k, Limit: 2, Epoch: epoch}
		v := Judge(cfg, []Event{of(20, 4, 3), of(0, 2, 1), of(10, 3, 2), one(0, 30, 1, Rejected)})
		if want := map[uint8]int64{2: 3, 3: 4}; v.LeakUnits != 7 || !maps.Equal(v.LeakTiers, want) {
			t.Errorf("%v: %d units leaked, by tier %v, want %v", k, v.LeakUnits, v.LeakTiers, want)
		}
		v = Judge(cfg, []Event{of(0, 1, 1), of(10, 3, 2), of(20, 1, 1)})
		if want := map[uint8]int64{1: 1, 2: 2}; v.LeakUnits != 3 || !maps.Equal(v.LeakTiers, want) {
			t.Errorf("%v: %d units leaked, by tier %v, want %v", k, v.LeakUnits, v.LeakTiers, want)
		}
		if both := v.With(&v); both.LeakTiers[2] != 4 || v.LeakTiers[2] != 2 {
			t.Errorf("%v: two quotas leaked %v", k, both.LeakTiers)
		}
	}
}

// TestRollingRefundsLeaveRoom: if refunds keep a rolling window within its
// limit whatever the order, no leak is possible.
func TestRollingRefundsLeaveRoom(t *testing.T) {
	cfg := rollingConfig(1, 0)
	cfg.Window.Length = 100
	v := Judge(cfg, []Event{
		one(0, 0, 1, Admitted), {Kind: Refund, Call: 5, Reply: 6, Units: 1, TakeReply: 1}, one(0, 10, 1, Admitted),
	})
	if v.LeakPossible != 0 || v.LeakPossibleWorst != 0 {
		t.Errorf("a leak of %d is called possible", v.LeakPossible)
	}
}
