package oracle

import (
	"maps"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestLongerHistories: with too many operations to try all orders, false rejects
// are checked against the units in use at every half nanosecond, and the certain
// leak of single windows against adding up.
func TestLongerHistories(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(9)
	seen := tally{}
	for range 150 {
		g := generator{Rand: r, span: 150, length: 9, cost: 3, refunds: true, gap: 1}
		ops := g.history(30 + r.IntN(90))
		limit := 5 + r.Int64N(40)
		initial := r.Int64N(5)
		v := Judge(standingConfig(limit, initial), events(ops))
		var always, once int64
		for _, o := range ops {
			if !o.rejected() {
				continue
			}
			least := int64(1 << 60)
			most := int64(0)
			for m := 2 * o.Call; m <= 2*o.Reply; m++ {
				low, high := inUseAt(ops, m)
				least = min(least, initial+low)
				most = max(most, initial+high)
			}
			if most+o.Units <= limit {
				always++
			}
			if least+o.Units <= limit {
				once++
			}
		}
		peak := int64(0)
		possible := int64(0)
		for m := range int64(2 * 200) {
			low, high := inUseAt(ops, m)
			peak = max(peak, initial+low-limit)
			possible = max(possible, initial+high-limit)
		}
		if v.FalseRejects != always || v.FalseRejectsPossible != once || v.LeakUnits != peak || v.LeakPossible != possible {
			t.Fatalf("standing: false rejects %d..%d, leak %d..%d; should be %d..%d and %d..%d", v.FalseRejects,
				v.FalseRejectsPossible,
				v.LeakUnits, v.LeakPossible, always, once, peak, possible)
		}
		seen.note("leak", peak > 0)
		seen.note("false rejects that differ", always > 0 && always < once)

		g.refunds = false
		g.length = 3
		limit = 1 + r.Int64N(9)
		ops = g.history(60)
		always = 0
		once = 0
		for i, o := range ops {
			if !o.rejected() {
				continue
			}
			low, high := lookBack(ops, i, initial, 2*6)
			if high+o.Units <= limit {
				always++
			}
			if low+o.Units <= limit {
				once++
			}
		}
		v = Judge(rollingConfig(limit, initial), events(ops))
		if v.FalseRejects != always || v.FalseRejectsPossible != once {
			t.Fatalf("rolling: false rejects %d..%d, should be %d..%d", v.FalseRejects, v.FalseRejectsPossible, always, once)
		}
		seen.note("rolling false rejects that differ", always > 0 && always < once)
	}
	seen.check(t, 20)
}

// inUseAt is what must and what can have been added up to the moment m (doubled).
func inUseAt(ops []operation, m int64) (low, high int64) {
	for _, o := range ops {
		begun := 2*o.Call <= m
		over := 2*o.Reply < m
		switch {
		case o.admitted() && over:
			low = low + o.Units
			high = high + o.Units
		case o.admitted() && begun:
			high += o.Units
		case o.of >= 0 && over:
			low = low - o.Units
			high = high - o.Units
		case o.of >= 0 && begun:
			low -= o.Units
		}
	}
	return low, high
}

// TestRollingWithRefundsIsSound tries every placement of requests, refunds,
// commits and expiries. The figures of false rejects, of the worst leak and of
// the worst possible leak are nearly always reached.
func TestRollingWithRefundsIsSound(t *testing.T) {
	testenv.Sequential(t)
	const length = 2 * 6
	r := seeded(10)
	seen := tally{}
	missed := tally{}
	const histories = 1000
	for range histories {
		g := generator{
			Rand: r, span: 9, length: 2, cost: 1 + r.Int64N(2), refunds: true, gap: r.Int64N(2),
			commits: r.IntN(3) == 0, expiries: r.IntN(3) == 0,
		}
		ops := g.history(3 + r.IntN(2))
		limit := 1 + r.Int64N(2)
		initial := r.Int64N(2)
		stays := make([]stay, len(ops))
		for i, o := range ops {
			stays[i] = stay{o.Call, o.Reply, o.Units}
		}
		worst := int64(1 << 60)
		mostWorst := int64(0)
		fits := make([]int, len(ops))
		mayFit := make([]int, len(ops))
		total := 0
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
				used, expired, mine := usedBehind(ops, at, i, initial, length)
				if o.admitted() {
					peak = max(peak, min(used-expired+o.Units-limit, mine+o.Units))
					continue
				}
				fits[i] += int(b2i(used+o.Units <= limit))
				mayFit[i] += int(b2i(used-expired+o.Units <= limit))
			}
			worst = min(worst, peak)
			mostWorst = max(mostWorst, peak)
		})
		var always, once int64
		for i, o := range ops {
			always += b2i(o.rejected() && fits[i] == total)
			once += b2i(o.rejected() && mayFit[i] > 0)
		}
		v := Judge(rollingConfig(limit, initial), events(ops))
		if v.LeakWorst > worst || v.LeakPossibleWorst < mostWorst || v.FalseRejects > always ||
			v.FalseRejectsPossible < once {
			t.Fatalf("limit %d, initial %d: worst %d..%d, rejects %d..%d; should be within %d..%d and %d..%d%s", limit, initial,
				v.LeakWorst, v.LeakPossibleWorst, v.FalseRejects, v.FalseRejectsPossible, worst, mostWorst, always, once,
				explain(ops))
		}
		missed.note("leak", v.LeakWorst < worst)
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
		// Nothing tries a rejection before what shares its moment.
		if n > histories/8 {
			t.Errorf("%s: missed in %d of %d histories, the figure has become weak", what, n, histories)
		}
	}
}

// usedBehind is what the window behind the request i holds in a placement, how
// much of that had expired, and how much was admitted. All that shares the moment
// has come first, refunds of it, too.
func usedBehind(ops []operation, at []int64, i int, initial, length int64) (used, expired, mine int64) {
	if at[i] < length {
		used += initial
	}
	for k, o := range ops {
		switch {
		case k == i || at[k] > at[i]:
		case o.admitted():
			if at[k] > at[i]-length {
				used += o.Units
				mine += o.Units
			}
		case o.of >= 0 && at[o.of] > at[i]-length:
			if o.Kind == Expire {
				expired += o.Units
			} else {
				used -= o.Units
			}
		}
	}
	return used, expired, mine
}

// TestWithdrawn: a request that turned out to belong to the next window leaves
// nothing behind in the one it was begun in.
func TestWithdrawn(t *testing.T) {
	cfg := tumblingConfig(1, 0)
	w := cfg.Window.At(cfg.Epoch).Index
	cells := map[Key]*Cell{{Index: w}: {}, {Index: w + 1}: {}}
	cells[Key{Index: w}].Begin(1)
	cells[Key{Index: w}].Withdraw(1)
	c := cells[Key{Index: w + 1}]
	c.Begin(1)
	if c.Reject(1, 0, 1) != true {
		t.Error("a lone request was rejected rightly")
	}
	v := Judge(cfg, []Event{{Call: width, Reply: width, Units: 1, Outcome: Rejected}})
	if err := Agree(v, cfg, maps.All(cells)); err != nil {
		t.Error(err)
	}
}

// TestOverruns: what a commit uses beyond its reservation is never leak for
// certain, but may be, and takes room from the requests after it.
func TestOverruns(t *testing.T) {
	take := func(call int64, o Outcome) Event { return Event{Call: call, Reply: call + 1, Units: 4, Outcome: o} }
	history := []Event{take(0, Admitted), {Kind: Commit, Call: 2, Reply: 3, Units: -3}, take(4, Rejected)}
	for name, cfg := range map[string]Config{"standing": standingConfig(10, 0), "tumbling": tumblingConfig(10, 0),
		"rolling": rollingConfig(10, 0)} {
		v := Judge(cfg, history)
		if v.Overrun != 3 || v.FalseRejects != 0 || v.FalseRejectsPossible != 1 || v.LeakPossible != 0 {
			t.Errorf("%s: %+v", name, v)
		}
		cfg.Limit = 11
		v = Judge(cfg, history)
		if v.FalseRejects != 1 {
			t.Errorf("%s: there is room for 4 beside 7 of 11: %+v", name, v)
		}
		cfg.Limit = 6
		v = Judge(cfg, history)
		if v.LeakUnits != 0 || v.LeakPossible != 1 || v.LeakPossibleWorst != 1 {
			t.Errorf("%s: an overrun is leak for certain, or cannot be: %+v", name, v)
		}
	}
}

// TestCurve: both extremes of one curve, against looking at every moment.
func TestCurve(t *testing.T) {
	r := seeded(11)
	for range 300 {
		var c curve
		c.reset(r.Int64N(5))
		var steps []step
		for range r.IntN(20) {
			s := step{r.Int64N(30), r.Int64N(9) - 4}
			steps = append(steps, s)
			c.add(s.at, s.by)
		}
		c.build()
		for range 20 {
			from := r.Int64N(34) - 2
			to := from + r.Int64N(12)
			least := int64(1 << 60)
			most := int64(-1 << 60)
			for m := from; m <= to; m++ {
				v := c.base
				for _, s := range steps {
					if s.at <= m {
						v += s.by
					}
				}
				least = min(least, v)
				most = max(most, v)
			}
			if lo, hi := c.least(from, to), c.most(from, to); lo != least || hi != most {
				t.Fatalf("%v in [%d,%d]: %d..%d, should be %d..%d", steps, from, to, lo, hi, least, most)
			}
		}
	}
}
