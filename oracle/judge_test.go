package oracle

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 42)) }

// explain prints a history that contradicts the oracle.
func explain(ops []operation) string {
	s := ""
	for i, o := range ops {
		s += fmt.Sprintf("\n  %d: [%d,%d] kind %d outcome %d units %d of %d", i, o.Call, o.Reply, o.Kind, o.Outcome, o.Units,
			o.of)
	}
	return s
}

func standingConfig(limit, initial int64) Config {
	return Config{Limit: limit, Initial: func(uint32) int64 { return initial }}
}

// tally counts how often a kind of history came up, so that a test that never
// met what it is about fails.
type tally map[string]int

func (c tally) note(name string, seen bool) {
	if seen {
		c[name]++
	} else {
		c[name] += 0
	}
}

func (c tally) check(t *testing.T, least int) {
	t.Helper()
	for name, n := range c {
		if n < least {
			t.Errorf("%s came up %d times, too few to prove anything", name, n)
		}
	}
	t.Log(c)
}

// TestStandingIsExact: both ends of every figure are those of trying all orders.
func TestStandingIsExact(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(1)
	seen := tally{}
	for range 6000 {
		g := generator{Rand: r, span: 20, length: 8, cost: 3, refunds: r.IntN(3) > 0, failedToo: true, gap: 1,
			expiries: r.IntN(2) == 0}
		ops := g.history(2 + r.IntN(4))
		limit := 1 + r.Int64N(5)
		initial := r.Int64N(4)
		want := truths(ops, limit, initial, false)
		v := Judge(standingConfig(limit, initial), events(ops))
		got := figures(v)
		within := got.within(want)
		// That two rejections are each wrong in some order does not make both so in
		// one, and likewise for right ones.
		got.falseWorst = want.falseWorst
		got.falseMost = want.falseMost
		if got != want || !within {
			t.Fatalf("limit %d, initial %d:\n got %+v\nwant %+v%s", limit, initial, got, want, explain(ops))
		}
		seen.note("certain leak", want.leak > 0)
		seen.note("leak that is only possible", want.leak < want.possible)
		seen.note("certain false reject", want.always > 0)
		seen.note("false reject that is only possible", want.always < want.once)
	}
	seen.check(t, 300)
}

// figures are a verdict's, as far as trying everything gives them.
func figures(v Verdict) truth {
	return truth{
		leak: v.LeakUnits, possible: v.LeakPossible, worst: v.LeakWorst, mostWorst: v.LeakPossibleWorst,
		always: v.FalseRejects, once: v.FalseRejectsPossible,
		alwaysU: v.FalseRejectUnits, onceU: v.FalseRejectUnitsPossible,
		falseWorst: v.FalseRejectWorst, falseMost: v.FalseRejectPossibleWorst,
	}
}

// TestTumblingIsExact: without refunds the certain leak is the least over all
// ways of putting single units into windows, and false rejects are those of
// trying all orders in all windows.
func TestTumblingIsExact(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(2)
	seen := tally{}
	loose := 0
	for range 6000 {
		g := generator{Rand: r, span: 30, length: 14, cost: 1 + r.Int64N(3), early: 20 * r.Int64N(2)}
		ops := g.history(1 + r.IntN(5))
		limit := 1 + r.Int64N(4)
		initial := r.Int64N(4)
		want := try(ops, limit, initial, true)
		v := Judge(tumblingConfig(limit, initial), events(ops))
		got := figures(v)
		fail := func(what string, n int64) {
			t.Helper()
			t.Fatalf("%s, should be %d; limit %d, initial %d:\n got %+v\nwant %+v%s", what, n, limit, initial, got, want,
				explain(ops))
		}
		units := leastByUnit(ops, limit, initial)
		if got.leak != units {
			fail("certain leak", units)
		}
		if g.cost == 1 && got.leak != want.leak {
			fail("certain leak of unit requests", want.leak)
		}
		if !got.within(want) {
			fail("contradicts the certain leak of whole requests, or something else", want.leak)
		}
		if got.always != want.always || got.once != want.once || got.alwaysU != want.alwaysU || got.onceU != want.onceU {
			fail("false rejects", want.always)
		}
		if got.possible > want.possible {
			loose++
		}
		seen.note("certain leak", want.leak > 0)
		seen.note("leak that is only possible", want.leak < want.possible)
		seen.note("certain false reject", want.always > 0)
		seen.note("false reject that is only possible", want.always < want.once)
		seen.note("units split between windows", units < want.leak)
	}
	seen.check(t, 20)
	t.Logf("the bound above the possible leak was not reached in %d of 6000", loose)
	if loose > 6 {
		t.Error("the bound above the possible leak has become loose")
	}
}

// leastByUnit is the least leak when each unit may be put into any window that
// its request touched.
func leastByUnit(ops []operation, limit, initial int64) int64 {
	var units []Event
	for _, o := range ops {
		for range o.Units {
			if o.admitted() {
				units = append(units, o.Event)
			}
		}
	}
	best := int64(1 << 60)
	in := map[int64]int64{}
	var rec func(i int, leak int64)
	rec = func(i int, leak int64) {
		if leak >= best {
			return
		}
		if i == len(units) {
			best = leak
			return
		}
		for w := windowOf(units[i].Call); w <= windowOf(units[i].Reply); w++ {
			room := limit
			if w == 0 {
				room = max(0, limit-initial)
			}
			in[w]++
			over := int64(0)
			if in[w] > room {
				over = 1
			}
			rec(i+1, leak+over)
			in[w]--
		}
	}
	rec(0, 0)
	return best
}

// TestTumblingWithRefundsIsSound: what is called certain is so in every order,
// and what happens in some order is called possible. If every give-back names
// its take, no commit goes beyond its reservation and requests are for one unit,
// both are nearly always reached.
func TestTumblingWithRefundsIsSound(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(3)
	seen := tally{}
	missed := tally{}
	sharp := 0
	for range 12000 {
		g := generator{
			Rand: r, span: 24, length: 9, cost: 1 + r.Int64N(2), refunds: true, failedToo: r.IntN(2) == 0, gap: r.Int64N(2),
			commits: r.IntN(2) == 0, expiries: r.IntN(3) == 0,
		}
		limit := 1 + r.Int64N(4)
		initial := r.Int64N(3)
		if r.IntN(4) == 0 {
			g.fill = initial
		}
		ops := g.history(3 + r.IntN(3))
		want := truths(ops, limit, initial, true)
		v := Judge(tumblingConfig(limit, initial), events(ops))
		got := figures(v)
		if !got.within(want) {
			t.Fatalf("limit %d, initial %d:\n got %+v\nwant %+v%s", limit, initial, got, want, explain(ops))
		}
		if g.cost == 1 && !slices.ContainsFunc(ops, func(o operation) bool {
			return o.Kind != Take && (o.of < 0 || o.Units < 0)
		}) {
			sharp++
			missed.note("leak", got.leak < want.leak)
			missed.note("possible leak", got.possible > want.possible)
			missed.note("false rejects", got.always < want.always)
			missed.note("possible false rejects", got.once > want.once)
		}
		late := slices.ContainsFunc(ops, func(o operation) bool {
			return o.of >= 0 && windowOf(o.Call) > windowOf(ops[o.of].Reply)
		})
		seen.note("certain leak", got.leak > 0)
		seen.note("certain false reject", got.always > 0)
		seen.note("given back after the window", late)
		seen.note("possible leak is none", got.possible == 0)
	}
	seen.check(t, 200)
	t.Logf("of %d histories, figures missed: %v", sharp, missed)
	for what, n := range missed {
		if n > sharp/50 {
			t.Errorf("%s: missed in %d of %d histories, the figure has become weak", what, n, sharp)
		}
	}
}

func rollingConfig(limit, initial int64) Config {
	return Config{
		Window: quota.Window{Kind: quota.Rolling, Length: 6}, Limit: limit,
		Initial: func(uint32) int64 { return initial },
	}
}

// TestRolling: the leak is bounded from both sides, and without refunds false
// rejects are exact.
func TestRolling(t *testing.T) {
	const length = 2 * 6 // doubled, as placements are
	r := seeded(4)
	seen := tally{}
	tight := 0
	reached := 0
	for range 1500 {
		g := generator{Rand: r, span: 16, length: 2, cost: 1 + r.Int64N(2)}
		if r.IntN(8) == 0 {
			g.length = 9
			g.span = 12
		}
		n := 2 + r.IntN(4)
		if g.length > 2 {
			n = 2 + r.IntN(2)
		}
		ops := g.history(n)
		limit := 1 + r.Int64N(3)
		initial := r.Int64N(3)
		stays := make([]stay, len(ops))
		for i, o := range ops {
			stays[i] = stay{o.Call, o.Reply, o.Units}
		}
		least := int64(1 << 60)
		most := int64(0)
		worst := int64(1 << 60)
		total := 0
		fits := make([]int, len(ops))
		placements(stays, func(at []int64) {
			total++
			removed, peak := greedy(ops, at, limit, initial, length)
			least = min(least, removed)
			most = max(most, removed)
			worst = min(worst, peak)
		})
		var always, once int64
		for i, o := range ops {
			if !o.rejected() {
				continue
			}
			// Two effects at the same moment can come in either order, so every
			// subset of those that share the rejection's moment may precede it.
			low, high := lookBack(ops, i, initial, length)
			fits[i] = 0
			if high+o.Units <= limit {
				always++
			}
			if low+o.Units <= limit {
				once++
			}
		}
		v := Judge(rollingConfig(limit, initial), events(ops))
		if v.LeakUnits > least || v.LeakPossible < most || v.LeakWorst > worst ||
			v.FalseRejects != always || v.FalseRejectsPossible != once {
			t.Fatalf("limit %d, initial %d: leak %d..%d worst %d rejects %d..%d, should be %d..%d worst %d rejects %d..%d%s",
				limit, initial,
				v.LeakUnits, v.LeakPossible, v.LeakWorst, v.FalseRejects, v.FalseRejectsPossible, least, most, worst, always, once,
				explain(ops))
		}
		if v.LeakUnits == least {
			tight++
		}
		if v.LeakPossible == most {
			reached++
		}
		seen.note("certain leak", v.LeakUnits > 0)
		seen.note("leak that is only possible", least < most)
		seen.note("certain false reject", always > 0)
		seen.note("false reject that is only possible", always < once)
	}
	seen.check(t, 100)
	t.Logf("the certain leak was the least one in %d of 1500, the possible one the most in %d", tight, reached)
	if tight < 1440 || reached < 1440 {
		t.Error("the bounds on the leak have become weak")
	}
}

// greedy keeps units in the order of their moments as long as they fit, which
// removes the fewest; peak is the worst excess of any window before removal.
func greedy(ops []operation, at []int64, limit, initial, length int64) (removed, peak int64) {
	type point struct{ at, units int64 }
	points := []point{}
	for i, o := range ops {
		if o.admitted() {
			points = append(points, point{at[i], o.Units})
		}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	fill := func(t int64) int64 {
		if t >= 0 && t < length {
			return initial
		}
		return 0
	}
	// Before the epoch nothing is placed in these histories.
	var kept []point
	for _, p := range points {
		used := fill(p.at)
		all := fill(p.at)
		mine := int64(0)
		for _, k := range kept {
			if k.at > p.at-length {
				used += k.units
			}
		}
		for _, q := range points {
			if q.at > p.at-length && q.at <= p.at {
				all += q.units
				mine += q.units
			}
		}
		peak = max(peak, min(all-limit, mine))
		k := min(p.units, max(0, limit-used))
		removed += p.units - k
		kept = append(kept, point{p.at, k})
	}
	return removed, peak
}

// lookBack is the least and the most that can be in use behind the rejection i,
// over all its moments. Every other operation is free to come before or after it
// if they can share the moment.
func lookBack(ops []operation, i int, initial, length int64) (low, high int64) {
	low = 1 << 60
	for m := 2 * ops[i].Call; m <= 2*ops[i].Reply; m++ {
		var lo, hi int64
		if m < length {
			if m > 0 {
				lo += initial
			}
			hi += initial
		}
		for k, o := range ops {
			if k == i || !o.admitted() {
				continue
			}
			canIn := false
			canOut := false
			for x := 2 * o.Call; x <= 2*o.Reply; x++ {
				in := x <= m && x > m-length
				canIn = canIn || in
				canOut = canOut || !in || x == m
			}
			if canIn {
				hi += o.Units
			}
			if canIn && !canOut {
				lo += o.Units
			}
		}
		low = min(low, lo)
		high = max(high, hi)
	}
	return low, high
}
