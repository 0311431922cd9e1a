package oracle

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// changing is a configuration of the brute-force tests, with changes.
func changing(kind quota.Kind, limit, initial int64, changes []LimitChange) Config {
	cfg := standingConfig(limit, initial)
	switch {
	case kind.Tumbling():
		cfg = tumblingConfig(limit, initial)
	case kind == quota.Rolling:
		cfg = rollingConfig(limit, initial)
	case kind == quota.FirstRequest:
		cfg = ownConfig(limit, initial)
	}
	cfg.Changes = changes
	return cfg
}

// someChanges are one or two changes of a limit.
func someChanges(r *rand.Rand, span, length, most int64) (out []LimitChange) {
	from := r.Int64N(span)
	for range 1 + r.IntN(2) {
		to := from + r.Int64N(length+1)
		out = append(out, LimitChange{from, to, r.Int64N(most + 1)})
		from = to + r.Int64N(span/2)
	}
	return out
}

// TestChangesAreSound: whatever explanation of a history is the true one, what is
// called certain is so, and what is true is called possible.
func TestChangesAreSound(t *testing.T) {
	testenv.Sequential(t)
	histories := testenv.Pick(2_000, 20_000)
	for _, c := range []struct {
		name      string
		kind      quota.Kind
		generator generator
		grid      int64
	}{
		{"standing", quota.Standing, generator{span: 14, length: 4, cost: 3, gap: 1}, 1},
		{"tumbling", quota.Fixed, generator{span: 22, length: 5, cost: 2, gap: 1}, 1},
		{"rolling", quota.Rolling, generator{span: 10, length: 1, cost: 2, gap: 1}, 2},
		{"first-request", quota.FirstRequest, generator{span: 12, length: 1, cost: 2, gap: 1}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := seeded(71)
			seen := tally{}
			missed := tally{}
			c.generator.Rand = r
			leaves := 0
			for i := range histories {
				g := c.generator
				g.refunds = i%2 == 1
				g.commits = i%8 == 1
				g.expiries = i%8 == 3
				g.failedToo = i%8 == 5
				limit := r.Int64N(5)
				initial := max(0, r.Int64N(5)-1)
				if i%16 == 7 && (c.kind == quota.Standing || c.kind.Tumbling()) {
					g.fill = initial
				}
				ops := g.history(2 + r.IntN(2) + int(b2i(i%16 < 2)))
				if len(ops) > mostOps {
					ops = ops[:2]
				}
				p := puzzle{
					Config:  changing(c.kind, limit, initial, someChanges(r, g.span, 2, 5)),
					initial: initial, ops: ops, grid: c.grid, random: r.Uint64(),
				}
				want := p.solveBoth()
				leaves += p.leaves
				v := Judge(p.Config, events(ops))
				if want.contradiction {
					t.Fatalf("limits in between are not in between: %+v%s", p.Changes, explain(ops))
				}
				if what := unsound(&p, v, want); what != "" {
					t.Fatalf("%s: limit %d, initial %d, %+v:\n got %+v\nwant %+v%s", what, limit, initial, p.Changes, figures(v), want,
						explain(ops))
				}
				missed.note("leak", v.LeakWorst < want.worst)
				missed.note("possible leak", v.LeakPossibleWorst > want.mostWorst)
				missed.note("false rejects", v.FalseRejects < want.always)
				missed.note("possible false rejects", v.FalseRejectsPossible > want.once)
				seen.note("certain leak", v.LeakUnits > 0)
				seen.note("leak that is only possible", want.worst < want.mostWorst)
				seen.note("certain false reject", v.FalseRejects > 0)
				seen.note("false reject that is only possible", want.always < want.once)
			}
			seen.check(t, histories/80)
			t.Logf("%d explanations of %d histories, figures missed: %v", leaves, histories, missed)
			for what, n := range missed {
				if n > histories/12 {
					t.Errorf("%s: missed in %d of %d histories, the figure has become weak", what, n, histories)
				}
			}
		})
	}
}

// unsound says which figure of a verdict some explanation contradicts.
func unsound(p *puzzle, v Verdict, want changedTruth) string {
	kind := p.Window.Kind
	rolling := kind == quota.Rolling
	given := slices.ContainsFunc(p.ops, func(o operation) bool { return o.Kind != Take })
	whole := kind == quota.Standing || kind.Tumbling()
	switch {
	case v.LeakWorst > want.worst:
		return "worst leak"
	case v.LeakPossibleWorst < want.mostWorst:
		return "worst possible leak"
	case !rolling && v.LeakUnits > want.leak, rolling && !given && v.LeakUnits > want.removed:
		return "leak"
	case !rolling && v.LeakPossible < want.possible, rolling && !given && v.LeakPossible < want.mostRemoved:
		return "possible leak"
	case v.FalseRejects > want.always || v.FalseRejectUnits > want.alwaysU:
		return "false rejects"
	case v.FalseRejectsPossible < want.once || v.FalseRejectUnitsPossible < want.onceU:
		return "possible false rejects"
	case whole && (v.FalseRejectWorst > want.falseWorst || v.FalseRejectPossibleWorst < want.falseMost):
		return "worst false rejects"
	case whole && v.Explained() && !want.explained:
		return "explained"
	case v.Linear != Linear{}:
		return "linear"
	}
	return ""
}

// inTurn puts the operations of a history and the changes of its limit one after the
// other, so that they have one explanation.
func inTurn(r *rand.Rand, n int, cost int64, refunds bool) (ops []operation, changes []LimitChange) {
	now := int64(0)
	var open []int
	for len(ops) < n {
		now += 1 + r.Int64N(3)
		o := operation{of: -1}
		o.Call = now
		o.Reply = now
		switch {
		case r.IntN(5) == 0 && len(changes) < 3:
			to := now + r.Int64N(2)
			changes = append(changes, LimitChange{now, to, r.Int64N(7)})
			now = to
			continue
		case refunds && len(open) > 0 && r.IntN(4) == 0:
			o.of = open[0]
			open = open[1:]
			o.Kind = Refund
			o.Units = ops[o.of].Units
		default:
			o.Units = 1 + r.Int64N(cost)
			if r.IntN(3) == 0 {
				o.Outcome = Rejected
			} else {
				open = append(open, len(ops))
			}
		}
		ops = append(ops, o)
	}
	return ops, changes
}

// settledLate reports whether units are given back after the end of their window, which began with a request.
func settledLate(ops []operation, initial int64) bool {
	var moments []int64
	if initial > 0 {
		moments = append(moments, 0)
	}
	for _, o := range ops {
		if o.admitted() {
			moments = append(moments, 2*o.Call)
		}
	}
	windows := begins(moments)
	return slices.ContainsFunc(ops, func(o operation) bool {
		return o.of >= 0 && windowAt(windows, 2*o.Call) != windowAt(windows, 2*ops[o.of].Call)
	})
}

// TestChangesInTurn: if nothing overlaps, both ends of every figure are the truth.
func TestChangesInTurn(t *testing.T) {
	testenv.Sequential(t)
	for _, c := range []struct {
		name    string
		kind    quota.Kind
		refunds bool
	}{
		{"standing", quota.Standing, true},
		{"tumbling", quota.Fixed, false},
		{"tumbling, given back", quota.Fixed, true},
		{"rolling", quota.Rolling, false},
		{"rolling, given back", quota.Rolling, true},
		{"first-request", quota.FirstRequest, false},
		{"first-request, given back", quota.FirstRequest, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := seeded(72)
			seen := tally{}
			for range 4000 {
				ops, changes := inTurn(r, 2+r.IntN(4), 3, c.refunds)
				if len(changes) == 0 {
					continue
				}
				limit := r.Int64N(7)
				initial := max(0, r.Int64N(6)-2)
				if c.kind == quota.FirstRequest && settledLate(ops, initial) {
					continue // it is open which window that is charged to
				}
				if c.kind == quota.Rolling {
					initial = 0 // the worst possible leak is loose by these
				}
				p := puzzle{Config: changing(c.kind, limit, initial, changes), initial: initial, ops: ops, grid: 1}
				for i := range p.Changes {
					p.Changes[i].To = p.Changes[i].From // wherever it is, nothing sees it
				}
				want := p.solve()
				p.Changes = changes
				v := Judge(p.Config, events(ops))
				what := unsound(&p, v, want)
				switch {
				case what != "":
				case v.LeakWorst != want.worst || v.LeakPossibleWorst != want.worst:
					what = "worst leak is not exact"
				case c.kind != quota.Rolling && (v.LeakUnits != want.leak || v.LeakPossible != want.leak):
					what = "leak is not exact"
				case v.FalseRejects != want.always || v.FalseRejectsPossible != want.always || v.FalseRejectUnits != want.alwaysU:
					what = "false rejects are not exact"
				}
				if what != "" {
					t.Fatalf("%s: limit %d, initial %d, %+v:\n got %+v\nwant %+v%s", what, limit, initial, changes, figures(v), want,
						explain(ops))
				}
				seen.note("leak", want.worst > 0)
				seen.note("false reject", want.always > 0)
				seen.note("lowered", slices.ContainsFunc(changes, func(c LimitChange) bool { return c.Limit < limit }))
				seen.note("raised", slices.ContainsFunc(changes, func(c LimitChange) bool { return c.Limit > limit }))
			}
			seen.check(t, 300)
		})
	}
}

// minutes are the kinds of windows in which limits change.
func minutes() map[string]quota.Window {
	return map[string]quota.Window{
		"standing":      {},
		"fixed":         {Kind: quota.Fixed, Length: time.Minute},
		"hour":          {Kind: quota.CalendarHour},
		"rolling":       {Kind: quota.Rolling, Length: time.Minute},
		"first-request": {Kind: quota.FirstRequest, Length: time.Minute},
	}
}

// countedBy is what a counter answers to requests of one unit, a second apart and a
// millisecond long. Each of its limits holds from a second on.
func countedBy(limits map[int64]int64, from, to int64) (out []Event) {
	used := int64(0)
	limit := limits[0]
	for s := from; s < to; s++ {
		if l, is := limits[s]; is {
			limit = l
		}
		o := Rejected
		if used < limit {
			used++
			o = Admitted
		}
		out = append(out, at(Take, s, 1, o))
	}
	return out
}

// TestPlantedChanges: a strategy that does not see that its limit was lowered leaks
// what it admits from then on, and one that does not see that it was raised rejects
// what there is room for. One that sees it does neither.
func TestPlantedChanges(t *testing.T) {
	second := int64(time.Second)
	change := func(s, limit int64) LimitChange {
		return LimitChange{s*second - second/2, s*second - second/4, limit}
	}
	for name, window := range minutes() {
		for _, c := range []struct {
			name                string
			limit               int64
			changes             []LimitChange
			used                map[int64]int64 // by the strategy
			leak, falseRejects  int64
			overOffered, trials int64
		}{
			{"lowered and seen", 20, []LimitChange{change(15, 10)}, map[int64]int64{0: 20, 15: 10}, 0, 0, 15, 1},
			{"lowered and not seen", 20, []LimitChange{change(15, 10)}, map[int64]int64{0: 20}, 5, 0, 15, 1},
			{"lowered to what is in use later", 20, []LimitChange{change(5, 10)}, map[int64]int64{0: 20}, 10, 0, 20, 1},
			{"lowered late", 20, []LimitChange{change(25, 10)}, map[int64]int64{0: 20}, 0, 0, 10, 1},
			{"lowered after the last request", 40, []LimitChange{change(35, 10)}, map[int64]int64{0: 40}, 0, 0, 0, 0},
			{"raised and seen", 10, []LimitChange{change(15, 20)}, map[int64]int64{0: 10, 15: 20}, 0, 0, 10, 1},
			{"raised and not seen", 10, []LimitChange{change(15, 20)}, map[int64]int64{0: 10}, 0, 15, 10, 1},
			{"raised in time", 10, []LimitChange{change(5, 40)}, map[int64]int64{0: 10, 5: 40}, 0, 0, 0, 0},
			{"raised far", 10, []LimitChange{change(15, 40)}, map[int64]int64{0: 10, 15: 40}, 0, 0, 5, 1},
			{"raised before it is seen", 10, []LimitChange{change(15, 20)}, map[int64]int64{0: 10, 18: 20}, 0, 3, 10, 1},
			{"raised, and seen before", 10, []LimitChange{change(15, 20)}, map[int64]int64{0: 10, 12: 20}, 3, 0, 10, 1},
			{"lowered and raised, unseen", 20, []LimitChange{change(8, 5), change(12, 20)}, map[int64]int64{0: 20}, 4, 0, 10, 1},
			{"to nothing", 20, []LimitChange{change(8, 0)}, map[int64]int64{0: 20}, 12, 0, 22, 1},
		} {
			events := countedBy(c.used, 0, 30)
			v := Judge(Config{Window: window, Limit: c.limit, Changes: c.changes, Epoch: time.Unix(1_699_999_200, 0)}, events)
			if v.LeakUnits != c.leak || v.LeakPossible != c.leak || v.LeakedRequests != c.leak || v.LeakWorst != c.leak {
				t.Errorf("%s, %s: leak %d..%d, %d requests, should be %d", name, c.name, v.LeakUnits, v.LeakPossible,
					v.LeakedRequests, c.leak)
			}
			if v.FalseRejects != c.falseRejects || v.FalseRejectsPossible != c.falseRejects {
				t.Errorf("%s, %s: %d..%d false rejects, should be %d", name, c.name, v.FalseRejects, v.FalseRejectsPossible,
					c.falseRejects)
			}
			if v.OverOffered != c.overOffered || v.Crossings != c.trials {
				t.Errorf("%s, %s: %d units over the limit in %d trials, should be %d in %d", name, c.name, v.OverOffered,
					v.Crossings, c.overOffered, c.trials)
			}
		}
	}
}

// TestChangesThatAreNone: a limit that changes to itself changes nothing. The worst
// possible leak of a rolling window is sharper if admissions alone make it.
func TestChangesThatAreNone(t *testing.T) {
	testenv.Sequential(t)
	r := seeded(73)
	for name, window := range minutes() {
		for range 300 {
			var events []Event
			open := []Event{}
			for range 40 {
				e := at(Take, r.Int64N(200), 1+r.Int64N(3), Outcome(r.IntN(3)))
				e.Reply += r.Int64N(20 * int64(time.Second))
				events = append(events, e)
				if e.admitted() {
					open = append(open, e)
				}
			}
			for _, e := range open[:r.IntN(1+len(open))] {
				g := Event{Kind: Refund + Kind(2*r.IntN(2)), Call: e.Reply + r.Int64N(30*int64(time.Second)), Units: e.Units,
					TakeCall: e.Call, TakeReply: e.Reply}
				g.Reply = g.Call
				events = append(events, g)
			}
			initial := r.Int64N(12)
			cfg := Config{Window: window, Limit: 8, Epoch: time.Unix(1_699_999_200, 0), Initial: func(uint32) int64 {
				return initial
			}}
			want := Judge(cfg, events)
			want.Linear = Linear{}
			for range 1 + r.IntN(3) {
				from := int64(0)
				if n := len(cfg.Changes); n > 0 {
					from = cfg.Changes[n-1].To
				}
				from += r.Int64N(60 * int64(time.Second))
				cfg.Changes = append(cfg.Changes, LimitChange{from, from + r.Int64N(20*int64(time.Second)), 8})
			}
			got := Judge(cfg, events)
			if window.Kind == quota.Rolling && got.LeakPossibleWorst < want.LeakPossibleWorst &&
				got.LeakPossible <= want.LeakPossible {
				got.LeakPossible = want.LeakPossible
				got.LeakPossibleWorst = want.LeakPossibleWorst
				got.Windows[0].LeakPossible = want.Windows[0].LeakPossible
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s, %+v:\n got %+v\nwant %+v", name, cfg.Changes, got, want)
			}
		}
	}
}
