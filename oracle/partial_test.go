package oracle

import (
	"testing"

	"github.com/quotabench/quotabench/quota"
)

// partly lets some admitted requests fall short of what they asked for.
func partly(g generator, n int) (ops []operation, rest []int64) {
	ops = g.history(n)
	rest = make([]int64, len(ops))
	for i, o := range ops {
		if o.admitted() && g.IntN(2) == 0 {
			rest[i] = 1 + g.Int64N(3)
		}
	}
	return ops, rest
}

func withRest(ops []operation, rest []int64) []Event {
	out := events(ops)
	for i, n := range rest {
		if n > 0 {
			short := out[i]
			short.Outcome = Short
			short.Units = n
			out = append(out, short)
		}
	}
	return out
}

// TestPartialGrants: a request that was granted fewer units than there was room for
// in every order was rejected wrongly, by as many units as there was room for at
// least. What it was granted counts, and what it was not takes no room.
func TestPartialGrants(t *testing.T) {
	for _, windows := range []bool{false, true} {
		r := seeded(51)
		seen := tally{}
		for range 3000 {
			g := generator{Rand: r, span: 20, length: 6, cost: 2, refunds: !windows && r.IntN(2) == 0, gap: 1}
			ops, rest := partly(g, 2+r.IntN(3))
			limit := 1 + r.Int64N(6)
			initial := r.Int64N(3)
			whole := truths(ops, limit, initial, windows)
			least := make([]int64, len(ops))
			most := make([]int64, len(ops))
			for i := range least {
				least[i] = rest[i]
			}
			orders(ops, windows, func(seq []effect) {
				used := map[int64]int64{0: initial}
				charged := map[int]int64{}
				for _, e := range seq {
					o := ops[e.op]
					w := e.window
					if !windows {
						w = 0
					}
					switch {
					case o.admitted():
						used[w] += o.Units
						charged[e.op] = w
						free := max(0, min(rest[e.op], limit-used[w]))
						least[e.op], most[e.op] = min(least[e.op], free), max(most[e.op], free)
					case o.of >= 0:
						used[charged[o.of]] -= o.Units
					}
				}
			})
			var surely, maybe, shorts, restUnits int64
			for i := range ops {
				surely = surely + least[i]
				maybe = maybe + most[i]
				shorts = shorts + b2i(rest[i] > 0)
				restUnits = restUnits + rest[i]
			}
			cfg := standingConfig(limit, initial)
			if windows {
				cfg = tumblingConfig(limit, initial)
			}
			v := Judge(cfg, withRest(ops, rest))
			if v.LeakUnits > whole.leak || v.LeakPossible < whole.possible || !windows && v.LeakUnits != whole.leak {
				t.Fatalf("limit %d, initial %d: leak %d..%d, should be %d..%d%s", limit, initial, v.LeakUnits, v.LeakPossible,
					whole.leak, whole.possible, explain(ops))
			}
			if n := v.FalseRejectUnits - whole.alwaysU; n > surely || !windows && n != surely {
				t.Fatalf("limit %d, initial %d, rest %v: %d units were wrongly not granted for certain, should be %d%s", limit,
					initial, rest, n, surely, explain(ops))
			}
			if n := v.FalseRejectUnitsPossible - whole.onceU; n < maybe {
				t.Fatalf("limit %d, initial %d, rest %v: %d units may be wrongly not granted, should be %d%s", limit, initial, rest,
					n, maybe, explain(ops))
			}
			plain := Judge(cfg, events(ops))
			if v.Issued.Requests != plain.Issued.Requests || v.Rejected.Units != plain.Rejected.Units+restUnits ||
				v.MaxInFlight != plain.MaxInFlight || v.Explained() && shorts > 0 {
				t.Fatalf("the rest of a request is counted as one: %+v", v)
			}
			seen.note("certain", surely > 0)
			seen.note("only possible", surely < maybe)
			seen.note("rightly short", shorts > 0 && maybe == 0)
		}
		seen.check(t, 50)
	}
}

// TestPartialGrantsElsewhere plants known amounts under the other kinds.
func TestPartialGrantsElsewhere(t *testing.T) {
	take := func(at int64, o Outcome, units int64) Event {
		return Event{Call: at, Reply: at, Units: units, Outcome: o}
	}
	for name, cfg := range map[string]Config{"rolling": rollingConfig(5, 0), "bucket": bucketConfig(5, 0, 1, 1000),
		"first-request": ownConfig(5, 0)} {
		for _, c := range []struct{ granted, rest, wrongly int64 }{{2, 4, 1}, {3, 3, 0}, {1, 1, 1}, {1, 9, 2}} {
			v := Judge(cfg, []Event{take(0, Admitted, 2), take(2, Admitted, c.granted), take(2, Short, c.rest)})
			want := c.wrongly
			if name == "first-request" { // if the amount is not worked out
				want = min(want, 1)
			}
			if v.FalseRejectUnits != want || v.FalseRejects != b2i(want > 0) || v.LeakUnits != 0 ||
				v.Admitted.Units != 2+c.granted {
				t.Errorf("%s, %+v: %+v", name, c, v)
			}
			x, ok, err := Expect(cfg, 0, []Event{take(0, Admitted, 2), take(2, Admitted, c.granted), take(2, Short, c.rest)},
				Reading{3, 3}, quota.CountsAdmitted)
			if err != nil || !ok || x.Units.Hi != 2+c.granted || x.Units.Lo < 1+c.granted {
				t.Errorf("%s, %+v: a counter must contain %+v", name, c, x)
			}
		}
	}
}
