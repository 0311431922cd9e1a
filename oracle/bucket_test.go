package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// bucketConfig is a bucket into which refill units flow in so many nanoseconds.
func bucketConfig(limit, initial, refill, length int64) Config {
	return Config{
		Window: quota.Window{Kind: quota.Bucket, Refill: refill, Length: time.Duration(length)},
		Limit:  limit, Initial: func(uint32) int64 { return initial }, Epoch: time.Unix(7, 0),
	}
}

// pail is a bucket for the tests, in shares of a unit that are whole at every half
// nanosecond.
type pail struct{ limit, initial, refill, unit int64 }

func newPail(limit, initial, refill, length int64) pail {
	return pail{limit, initial, refill, 2 * length}
}

// overflow is what has to be refused of admissions at the given moments (doubled),
// when each takes as many whole units as there are.
func (p pail) overflow(ops []operation, at []int64) (leak int64) {
	var seq []int
	for i, o := range ops {
		if o.admitted() {
			seq = append(seq, i)
		}
	}
	slices.SortStableFunc(seq, func(a, b int) int { return int(at[a] - at[b]) })
	level := p.limit * p.unit
	last := int64(-1 << 40)
	filled := false
	forward := func(to int64) {
		level = min(p.limit*p.unit, level+(to-last)*p.refill)
		last = to
	}
	for _, i := range seq {
		if !filled && at[i] >= 0 {
			filled = true
			forward(0)
			level -= p.initial * p.unit
		}
		forward(at[i])
		got := min(ops[i].Units, max(0, level)/p.unit)
		level -= got * p.unit
		leak += ops[i].Units - got
	}
	return leak
}

// missing is what stretches that end at the moment x lack at most, in units rounded
// up, with what counts of each operation.
func (p pail) missing(x int64, at []int64, units []int64) int64 {
	most := int64(0)
	begins := append([]int64{0}, at...)
	for _, s := range begins {
		if s > x {
			continue
		}
		sum := int64(0)
		if s <= 0 && x >= 0 {
			sum = p.initial
		}
		for k := range at {
			if at[k] >= s && at[k] <= x {
				sum += units[k]
			}
		}
		lack := sum*p.unit - (x-s)*p.refill
		most = max(most, (lack+p.unit-1)/p.unit)
	}
	return most
}

var flows = [][2]int64{{1, 2}, {1, 3}, {2, 3}, {3, 2}, {1, 7}, {1, 50}}

// TestBucketIsExact checks the figures against every placement of the operations.
// Nothing is given back.
func TestBucketIsExact(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(21)
	seen := tally{}
	missed := tally{}
	const histories = 6000
	for range histories {
		g := generator{Rand: r, span: 9, length: r.Int64N(4), cost: 1 + r.Int64N(2), early: 3 * r.Int64N(2)}
		ops := g.history(2 + r.IntN(3))
		flow := flows[r.IntN(len(flows))]
		limit := 1 + r.Int64N(3)
		initial := r.Int64N(limit + 1)
		if g.early > 0 {
			initial = 0
		}
		p := newPail(limit, initial, flow[0], flow[1])
		want := truth{leak: 1 << 60, worst: 1 << 60}
		stays := make([]stay, len(ops))
		units := make([]int64, len(ops))
		for i, o := range ops {
			stays[i] = stay{o.Call, o.Reply, o.Units}
			if o.admitted() {
				units[i] = o.Units
			}
		}
		fits := make([]int, len(ops))
		mayFit := make([]int, len(ops))
		total := 0
		placements(stays, func(at []int64) {
			total++
			leak := p.overflow(ops, at)
			worst := int64(0)
			for i, o := range ops {
				used := p.missing(at[i], at, units)
				if o.admitted() {
					worst = max(worst, used-limit)
				} else if o.rejected() {
					fits[i] += int(b2i(used+o.Units <= limit))
					// What shares the moment may also come later.
					earlier := slices.Clone(units)
					for k := range ops {
						if at[k] == at[i] {
							earlier[k] = 0
						}
					}
					mayFit[i] += int(b2i(p.missing(at[i], at, earlier)+o.Units <= limit))
				}
			}
			want.leak = min(want.leak, leak)
			want.possible = max(want.possible, leak)
			want.worst = min(want.worst, worst)
			want.mostWorst = max(want.mostWorst, worst)
		})
		for i, o := range ops {
			if o.rejected() {
				want.always += b2i(fits[i] == total)
				want.once += b2i(mayFit[i] > 0)
				want.alwaysU += b2i(fits[i] == total) * o.Units
				want.onceU += b2i(mayFit[i] > 0) * o.Units
			}
		}
		v := Judge(bucketConfig(limit, initial, flow[0], flow[1]), events(ops))
		if v.FalseRejects != want.always || v.FalseRejectsPossible != want.once || v.FalseRejectUnits != want.alwaysU ||
			v.FalseRejectUnitsPossible != want.onceU ||
			v.LeakPossibleWorst != want.mostWorst || v.LeakUnits > want.leak || v.LeakWorst > want.worst ||
			v.LeakPossible < want.possible {
			t.Fatalf("limit %d, initial %d, %d per %d ns:\n got %+v\nwant %+v%s", limit, initial, flow[0], flow[1], figures(v),
				want, explain(ops))
		}
		missed.note("leak", v.LeakUnits < want.leak)
		missed.note("worst leak", v.LeakWorst < want.worst)
		missed.note("possible leak", v.LeakPossible > want.possible)
		seen.note("certain leak", want.leak > 0)
		seen.note("leak in two stretches", v.LeakWindows > 1)
		seen.note("leak that is only possible", want.leak < want.possible)
		seen.note("certain false reject", want.always > 0)
		seen.note("false reject that is only possible", want.always < want.once)
	}
	seen.check(t, 20)
	t.Logf("of %d histories, bounds not reached: %v", histories, missed)
	for what, n := range missed {
		if n > histories/40 {
			t.Errorf("%s: missed in %d of %d histories, the figure has become weak", what, n, histories)
		}
	}
}

// TestBucketWithRefundsIsSound tries every placement of requests, refunds, commits
// and expiries, with more in use at the start than the bucket holds, too.
func TestBucketWithRefundsIsSound(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(22)
	seen := tally{}
	missed := tally{}
	const histories = 1000
	for range histories {
		g := generator{
			Rand: r, span: 9, length: 2, cost: 1 + r.Int64N(2), refunds: true, gap: r.Int64N(2),
			commits: r.IntN(3) == 0, expiries: r.IntN(3) == 0, failedToo: r.IntN(3) == 0, early: 4 * (r.Int64N(5) / 4),
		}
		ops := g.history(3 + r.IntN(2))
		flow := flows[r.IntN(len(flows))]
		limit := 1 + r.Int64N(2)
		initial := r.Int64N(4)
		p := newPail(limit, initial, flow[0], flow[1])
		stays := make([]stay, len(ops))
		for i, o := range ops {
			stays[i] = stay{o.Call, o.Reply, o.Units}
		}
		worst := int64(1 << 60)
		mostWorst := int64(0)
		fits := make([]int, len(ops))
		mayFit := make([]int, len(ops))
		total := 0
		held := make([]int64, len(ops))
		stored := make([]int64, len(ops))
		placements(stays, func(at []int64) {
			for i, o := range ops {
				if o.of >= 0 && at[i] < at[o.of] {
					return
				}
			}
			total++
			var peak int64
			for i, o := range ops {
				if o.Kind != Take {
					continue
				}
				var mine int64
				for k, q := range ops { // what has been taken and not been given back by now
					held[k], stored[k] = 0, 0
					if !q.admitted() || at[k] > at[i] {
						continue
					}
					held[k], stored[k] = q.Units, q.Units
					mine += q.Units
					for b, give := range ops {
						if give.of != k || at[b] > at[i] {
							continue
						}
						held[k] -= give.Units
						if give.Kind != Expire && give.Outcome != Failed || give.Units < 0 {
							stored[k] -= give.Units
						}
					}
				}
				if o.admitted() {
					peak = max(peak, min(p.missing(at[i], at, held)-limit, mine))
				} else if o.rejected() {
					fits[i] += int(b2i(p.missing(at[i], at, stored)+o.Units <= limit))
					mayFit[i] += int(b2i(p.missing(at[i], at, held)+o.Units <= limit))
				}
			}
			worst = min(worst, peak)
			mostWorst = max(mostWorst, peak)
		})
		var always, once int64
		for i, o := range ops {
			always += b2i(o.rejected() && fits[i] == total)
			once += b2i(o.rejected() && mayFit[i] > 0)
		}
		v := Judge(bucketConfig(limit, initial, flow[0], flow[1]), events(ops))
		if v.LeakWorst > worst || v.LeakPossibleWorst < mostWorst || v.FalseRejects > always ||
			v.FalseRejectsPossible < once {
			t.Fatalf("limit %d, initial %d, %v: worst %d..%d, rejects %d..%d; should be within %d..%d and %d..%d%s", limit,
				initial, flow,
				v.LeakWorst, v.LeakPossibleWorst, v.FalseRejects, v.FalseRejectsPossible, worst, mostWorst, always, once,
				explain(ops))
		}
		missed.note("leak", v.LeakWorst < worst && initial <= limit)
		missed.note("possible leak", v.LeakPossibleWorst > mostWorst)
		missed.note("false rejects", v.FalseRejects < always)
		missed.note("possible false rejects", v.FalseRejectsPossible > once)
		seen.note("certain leak", v.LeakWorst > 0)
		seen.note("certain false reject", v.FalseRejects > 0)
		seen.note("refund", ops[len(ops)-1].of >= 0)
	}
	seen.check(t, 50)
	t.Logf("of %d histories, figures missed: %v", histories, missed)
	for what, n := range missed {
		if n > histories/6 {
			t.Errorf("%s: missed in %d of %d histories, the figure has become weak", what, n, histories)
		}
	}
}
