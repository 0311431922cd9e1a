package oracle

import (
	"math"
	"testing"
)

// TestLinearIsExact: the decision is that of trying every order, with every
// failed request in effect at some moment or never.
func TestLinearIsExact(t *testing.T) {
	r := seeded(7)
	seen := tally{}
	for range 5000 {
		g := generator{Rand: r, span: 16, length: 10, cost: 1}
		ops := g.history(1 + r.IntN(6))
		for i := range ops {
			if ops[i].Outcome == Rejected && r.IntN(4) == 0 {
				ops[i].Outcome = Failed
			}
		}
		limit := r.Int64N(4)
		initial := r.Int64N(3)
		wantSafe, wantExact := tryLinear(ops, limit, initial)
		got := Judge(standingConfig(limit, initial), events(ops)).Linear
		if want := (Linear{true, wantSafe, wantExact}); got != want {
			t.Fatalf("limit %d, initial %d: %+v, should be %+v%s", limit, initial, got, want, explain(ops))
		}
		seen.note("exact", got.Exact)
		seen.note("only safe", got.Safe && !got.Exact)
		seen.note("neither", !got.Safe)
	}
	seen.check(t, 300)
}

// TestLinearOfWindows: every window of every subject must have an order, and what
// is not decided is said not to be.
func TestLinearOfWindows(t *testing.T) {
	admitted := one(0, 0, 1, Admitted)
	rejected := one(0, 4, 1, Rejected)
	next := one(0, width, 1, Admitted)
	other := one(1, 0, 1, Rejected)
	all := Linear{true, true, true}
	for _, c := range []struct {
		name   string
		cfg    Config
		events []Event
		want   Linear
	}{
		{"nothing", tumblingConfig(1, 0), nil, Linear{}},
		{"two windows", tumblingConfig(1, 0), []Event{admitted, rejected, next}, all},
		{"rejected in an empty window", tumblingConfig(1, 0), []Event{admitted, one(0, width, 1, Rejected)},
			Linear{true, true, false}},
		{"leak in one window", tumblingConfig(1, 0), []Event{admitted, one(0, 2, 1, Admitted), next},
			Linear{true, false, false}},
		{"leak in the first window, wrong rejection in the second", tumblingConfig(1, 0),
			[]Event{admitted, one(0, 2, 1, Admitted), one(0, width, 1, Rejected)}, Linear{true, false, false}},
		{"another subject rejected wrongly", tumblingConfig(1, 0), []Event{admitted, other}, Linear{true, true, false}},
		{"initial units only in the first window", tumblingConfig(1, 1), []Event{rejected, next}, all},
		{"initial units above the limit", tumblingConfig(1, 2), []Event{rejected}, all},
		{"two units", tumblingConfig(1, 0), []Event{one(0, 0, 2, Rejected)}, Linear{}},
		{"across a boundary", tumblingConfig(1, 0), []Event{{Call: 0, Reply: width, Units: 1}}, Linear{}},
		{"into a boundary's other side", tumblingConfig(1, 0),
			[]Event{{Call: 0, Reply: 2 * width, Units: 1}, one(0, width, 1, Rejected)}, Linear{}},
		{"given back", standingConfig(1, 0), []Event{admitted, {Kind: Refund, Call: 3, Reply: 4, Units: 1, TakeReply: 1}},
			Linear{}},
		{"given back to its own window after it", tumblingConfig(1, 0),
			[]Event{admitted, {Kind: Refund, Call: width, Reply: width, Units: 1, TakeReply: 1}, next}, all},
		{"only given back", standingConfig(1, 0), []Event{{Kind: Refund, Units: 1}}, Linear{}},
		{"rolling", rollingConfig(1, 0), []Event{admitted}, Linear{}},
	} {
		if got := Judge(c.cfg, c.events).Linear; got != c.want {
			t.Errorf("%s: %+v, should be %+v", c.name, got, c.want)
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
			next := units + 1
			ok := right
			if o.Outcome == Rejected {
				next = units
				ok = right && !fits
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
