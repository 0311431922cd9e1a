package oracle

import (
	"math"
	"testing"
)

// TestLinearIsExact: the decision is that of trying every order, with every
// failed request in effect at some moment or never.
func TestLinearIsExact(t *testing.T) {
	r, seen := seeded(7), tally{}
	for range 5000 {
		g := generator{Rand: r, span: 16, length: 10, cost: 1}
		ops := g.history(1 + r.IntN(6))
		for i := range ops {
			if ops[i].Outcome == Rejected && r.IntN(4) == 0 {
				ops[i].Outcome = Failed
			}
		}
		limit, initial := r.Int64N(4), r.Int64N(3)
		wantSafe, wantExact := tryLinear(ops, limit, initial)
		safe, exact, err := Linear(events(ops), limit, initial)
		if err != nil || safe != wantSafe || exact != wantExact {
			t.Fatalf("limit %d, initial %d: safe %v exact %v (%v), should be %v %v%s",
				limit, initial, safe, exact, err, wantSafe, wantExact, explain(ops))
		}
		seen.note("exact", exact)
		seen.note("only safe", safe && !exact)
		seen.note("neither", !safe)
	}
	seen.check(t, 300)
	for _, e := range []Event{{Units: 2}, {Units: 1, Kind: Refund}} {
		if _, _, err := Linear([]Event{e}, 1, 0); err == nil {
			t.Errorf("decided on %+v", e)
		}
	}
}

func tryLinear(ops []operation, limit, initial int64) (safe, exact bool) {
	used := make([]bool, len(ops))
	var rec func(now, units int64, right bool)
	rec = func(now, units int64, right bool) {
		done := true
		for i, o := range ops {
			if used[i] {
				continue
			}
			last := o.Reply
			if o.Outcome == Failed {
				last = math.MaxInt64
			} else {
				done = false
			}
			if max(now, o.Call) > last {
				continue
			}
			fits := units+1 <= limit
			next, ok := units+1, right
			if o.Outcome == Rejected {
				next, ok = units, right && !fits
			} else if !fits {
				continue
			}
			used[i] = true
			rec(max(now, o.Call), next, ok)
			used[i] = false
		}
		if done {
			safe = true
			exact = exact || right
		}
	}
	rec(math.MinInt64, initial, true)
	return safe, exact
}
