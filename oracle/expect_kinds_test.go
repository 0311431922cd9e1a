package oracle

import (
	"math/rand/v2"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// counted is a history with failed takes and with rejections of both sorts.
func counted(r *rand.Rand, g generator) []operation {
	g.Rand = r
	ops := g.history(3 + r.IntN(2))
	given := map[int]bool{}
	for _, o := range ops {
		given[o.of] = true
	}
	for i := range ops {
		if ops[i].Kind == Take && !given[i] {
			ops[i].Outcome = Outcome(r.IntN(int(RejectedDegraded) + 1))
		}
	}
	return ops
}

// shown visits what a counter can show in a reading, for every placement: the
// moments, and which operations the counter contains then. What fails may take
// effect later or never, and a rejection be counted while it lasts.
func shown(ops []operation, at Reading, attempts bool, visit func(m int64, moments []int64, units []int64)) {
	stays := make([]stay, len(ops))
	units := make([]int64, len(ops))
	open := func(o operation) bool { return o.Outcome == Failed || o.Kind == Take && o.Outcome == RejectedDegraded }
	for i, o := range ops {
		stays[i] = stay{o.Call, o.Reply, o.Units}
		if open(o) {
			stays[i].reply += 4
		}
	}
	placements(stays, func(moments []int64) {
		for i, o := range ops {
			if o.of >= 0 && moments[i] < moments[o.of] {
				return
			}
		}
		for m := 2 * at.Call; m <= 2*at.Reply; m++ {
			for mask := range 4 { // what is open has no effect; what is rejected is counted
				for i, o := range ops {
					units[i] = 0
					happened := moments[i] <= m && (mask&1 == 0 || !open(o))
					switch {
					case o.Kind != Take || !happened:
					case o.admitted(), open(o), attempts, mask&2 != 0 && 2*o.Reply >= m:
						units[i] = o.Units
					}
				}
				for i, o := range ops {
					if o.of >= 0 && moments[i] <= m && (mask&1 == 0 || !open(o)) {
						units[o.of] -= o.Units
					}
				}
				visit(m, moments, units)
			}
		}
	})
}

// TestExpectBucket: a counter that lost nothing shows nothing beyond what is
// expected, and a reading in the middle of nothing is expected to a unit.
func TestExpectBucket(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(41)
	seen := tally{}
	histories := testenv.Pick(400, 1200)
	for range histories {
		ops := counted(r, generator{span: 9, length: 2, cost: 2, refunds: true, gap: 1, commits: r.IntN(2) == 0,
			expiries: r.IntN(2) == 0})
		flow := flows[r.IntN(len(flows))]
		limit := int64(5)
		initial := r.Int64N(3)
		p := newPail(limit, initial, flow[0], flow[1])
		at := Reading{Call: r.Int64N(14)}
		at.Reply = at.Call + r.Int64N(2)
		for _, counts := range []quota.Counting{quota.CountsAdmitted, quota.CountsAttempts} {
			attempts := counts == quota.CountsAttempts
			got, ok, err := Expect(bucketConfig(limit, initial, flow[0], flow[1]), 0, events(ops), at, counts)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			want := Interval{1 << 60, -1}
			shown(ops, at, attempts, func(m int64, moments, units []int64) {
				v := p.missing(m, moments, units)
				want.Lo = min(want.Lo, max(0, v-1))
				want.Hi = max(want.Hi, v)
			})
			if got.Units.Lo > want.Hi || got.Units.Hi < want.Hi || got.Units.Lo > want.Lo+1 {
				t.Fatalf("%s in %+v, initial %d, %v: %+v, shown were %+v%s", counts, at, initial, flow, got, want, explain(ops))
			}
			seen.note("certain", got.Units.Width() == 0 && got.Units.Lo > 0)
			seen.note("to a unit", got.Units.Width() == 1)
			seen.note("stranded", got.Units.Hi > got.Held.Hi)
			seen.note("surplus", attempts && got.Surplus.Hi > 0)
			seen.note("reached", got.Units.Hi == want.Hi)
		}
	}
	seen.check(t, histories/24)
	if 2*seen["reached"] < 3*histories {
		t.Errorf("the upper end was reached in %d of %d readings: it has become weak", seen["reached"], 2*histories)
	}
}

// TestExpectOwnWindow is the same for windows that begin with their first request.
func TestExpectOwnWindow(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(42)
	seen := tally{}
	for range 1200 {
		ops := counted(r, generator{span: 16, length: 1, cost: 2, refunds: true, gap: 1, commits: r.IntN(2) == 0,
			expiries: r.IntN(2) == 0})
		initial := r.Int64N(3)
		at := Reading{Call: r.Int64N(20)}
		at.Reply = at.Call + r.Int64N(2)
		got, ok, err := Expect(ownConfig(5, initial), 0, events(ops), at, quota.CountsAdmitted)
		if err != nil {
			t.Fatal(err)
		}
		seen.note("known", ok)
		seen.note("not known", !ok)
		if !ok {
			continue
		}
		want := Interval{1 << 60, -1 << 60}
		shown(ops, at, false, func(m int64, moments, units []int64) {
			var opening []int64
			if initial > 0 {
				opening = append(opening, 0)
			}
			for i, o := range ops {
				if o.admitted() {
					opening = append(opening, moments[i])
				}
			}
			windows := begins(opening)
			now := windowAt(windows, m)
			v := int64(0)
			if now >= 0 && initial > 0 && windowAt(windows, 0) == now {
				v = initial
			}
			for i := range ops {
				if now >= 0 && windowAt(windows, moments[i]) == now {
					v += units[i]
				}
			}
			want.Lo = min(want.Lo, v)
			want.Hi = max(want.Hi, v)
		})
		if !got.Units.holds(want) {
			t.Fatalf("in %+v, initial %d: %+v, shown were %+v%s", at, initial, got, want, explain(ops))
		}
		seen.note("certain", got.Units.Width() == 0 && got.Units.Lo > 0)
		seen.note("reached", got.Units == want)
		seen.note("between windows", got.Units == Interval{} && len(ops) > 0)
	}
	seen.check(t, 30)
	if 2*seen["reached"] < seen["known"] {
		t.Errorf("both ends were reached in %d of %d readings: they have become weak", seen["reached"], seen["known"])
	}
}
