package oracle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// reservation is a take with what was given back of it.
type reservation struct {
	take  Event
	gives []Event
}

// values visits what the counter can contain of a reservation at the moment of a
// reading (doubled): every moment of every effect is tried, and of effects that
// share a moment with the reading both orders. honest leaves out failures and
// makes the store notice expiries.
func (r reservation) values(at int64, attempts, honest bool, in func(taken int64) bool, visit func(int64)) {
	e := r.take
	if e.Outcome == Failed || e.Outcome == RejectedDegraded && !honest {
		visit(0)
	}
	if e.Outcome == Failed && honest {
		return
	}
	for x := 2 * e.Call; x <= 2*e.Reply; x++ {
		for _, before := range []bool{true, false} {
			switch {
			case before && x > at || !before && x < at:
			case !before || !in(x):
				visit(0)
			case e.Outcome == Admitted:
				r.given(0, x, at, e.Units, honest, visit)
			case e.Outcome == Failed, attempts, e.Outcome == RejectedDegraded && !honest:
				visit(e.Units)
			default: // counted until the rejection is taken back
				visit(0)
				if at <= 2*e.Reply {
					visit(e.Units)
				}
			}
		}
	}
}

func (r reservation) given(n int, from, at, value int64, honest bool, visit func(int64)) {
	if n == len(r.gives) {
		visit(value)
		return
	}
	g := r.gives[n]
	if g.Outcome == Failed {
		r.given(n+1, from, at, value, honest, visit)
		if honest {
			return
		}
	}
	for y := max(from, 2*g.Call); y <= max(from, 2*g.Reply); y++ {
		if y <= at {
			r.given(n+1, y, at, value-g.Units, honest, visit)
		}
		if y >= at {
			r.given(n+1, y, at, value, honest, visit)
		}
	}
}

// expectation is the least and the most that the counter can contain.
func expectation(all []reservation, at Reading, attempts, honest bool, fill func(m int64) int64,
	in func(m, x int64) bool) Interval {
	out := Interval{1 << 60, -1 << 60}
	for m := 2 * at.Call; m <= 2*at.Reply; m++ {
		sum := Interval{fill(m), fill(m)}
		for _, r := range all {
			one := Interval{1 << 60, -1 << 60}
			r.values(m, attempts, honest, func(x int64) bool { return in(m, x) }, func(v int64) {
				one.Lo = min(one.Lo, v)
				one.Hi = max(one.Hi, v)
			})
			sum.Lo = sum.Lo + one.Lo
			sum.Hi = sum.Hi + one.Hi
		}
		out.Lo = min(out.Lo, sum.Lo)
		out.Hi = max(out.Hi, sum.Hi)
	}
	return out
}

// reservations makes small random ones: admitted with commits, refunds and
// expiries, also long after, and rejected and failed ones.
func reservations(r *rand.Rand, n int, length int64) []reservation {
	out := make([]reservation, n)
	for i := range out {
		call := r.Int64N(40)
		e := Event{Call: call, Reply: call + r.Int64N(length+1), Units: 1 + r.Int64N(4), Outcome: Outcome(r.IntN(4))}
		if r.IntN(2) == 0 {
			e.Outcome = Admitted
		}
		out[i].take = e
		if e.Outcome != Admitted {
			continue
		}
		held := e.Units
		from := e.Reply
		for _, k := range []Kind{Commit, Refund} {
			if r.IntN(2) == 0 {
				continue
			}
			g := Event{Kind: k, Call: from + r.Int64N(1+r.Int64N(25)), Units: held, TakeCall: e.Call, TakeReply: e.Reply}
			g.Reply = g.Call + r.Int64N(length+1)
			switch {
			case k == Commit:
				g.Units = held - r.Int64N(held+3)
			case r.IntN(3) == 0:
				g.Kind = Expire
				g.Reply = g.Call
			}
			if g.Kind != Expire && r.IntN(5) == 0 {
				g.Outcome = Failed
			}
			held = held - g.Units
			from = g.Reply
			out[i].gives = append(out[i].gives, g)
		}
	}
	return out
}

func flat(all []reservation) []Event {
	var out []Event
	for _, r := range all {
		out = append(append(out, r.take), r.gives...)
	}
	return ordered(out)
}

func (i Interval) holds(j Interval) bool { return i.Lo <= j.Lo && i.Hi >= j.Hi }

// TestExpectIsExact: under every kind of window, both ends of what is expected
// are shown by some order of the effects, and nothing beyond them is. A reading
// that takes time only has to contain all that is shown.
func TestExpectIsExact(t *testing.T) {
	const rolling = 6
	for name, cfg := range map[string]Config{
		"standing": standingConfig(5, 0), "tumbling": tumblingConfig(5, 0), "rolling": rollingConfig(5, 0),
	} {
		t.Run(name, func(t *testing.T) {
			r := seeded(21)
			seen := tally{}
			for range 2500 {
				all := reservations(r, 1+r.IntN(4), 1+r.Int64N(4))
				events := flat(all)
				at := Reading{Call: r.Int64N(60)}
				at.Reply = at.Call + max(0, r.Int64N(4)-1)
				initial := r.Int64N(3)
				cfg.Initial = func(uint32) int64 { return initial }
				in := func(_, _ int64) bool { return true }
				fill := func(int64) int64 { return initial }
				switch name {
				case "tumbling":
					w := windowOf(at.Call)
					in = func(_, x int64) bool { return windowOf(x/2) == w }
					fill = func(int64) int64 { return initial * b2i(w == 0) }
				case "rolling":
					in = func(m, x int64) bool { return x > m-2*rolling }
					fill = func(m int64) int64 { return initial * b2i(m < 2*rolling) }
				}
				for _, counts := range []quota.Counting{quota.CountsAdmitted, quota.CountsAttempts} {
					attempts := counts == quota.CountsAttempts
					got, ok, err := Expect(cfg, 0, events, at, counts)
					if err != nil {
						t.Fatal(err)
					}
					if known := name != "tumbling" || unambiguous(all, at, attempts); known != ok {
						t.Fatalf("known %v, said %v: %s in %+v: %+v", known, ok, counts, at, all)
					}
					seen.note("known", ok)
					seen.note("not known", !ok || name != "tumbling")
					if !ok {
						continue
					}
					want := expectation(all, at, attempts, false, fill, in)
					held := expectation(all, at, attempts, true, fill, in)
					exact := got.Units == want && got.Held == held
					if at.Reply > at.Call { // the ends need not be shown at the same moment
						exact = got.Units.holds(want) && got.Held.holds(held)
					}
					if !exact {
						t.Fatalf("%s in %+v, initial %d: %+v, should be %+v and held %+v: %+v", counts, at, initial, got, want, held, all)
					}
					seen.note("stranded", got.Units.Hi > got.Held.Hi)
					seen.note("certain", got.Units.Width() == 0)
					seen.note("surplus", got.Surplus.Lo > 0 || !attempts)
				}
			}
			seen.check(t, 100)
		})
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// unambiguous reports whether neither the reading nor anything that the counter
// contains for certain crosses an end of the window in force.
func unambiguous(all []reservation, at Reading, attempts bool) bool {
	w := windowOf(at.Call)
	if windowOf(at.Reply) != w {
		return false
	}
	for _, r := range all {
		e := r.take
		if e.Call > at.Reply || windowOf(e.Call) >= w || windowOf(e.Reply) < w {
			continue
		}
		if e.Outcome == Admitted || attempts && e.Outcome == Rejected {
			return false
		}
	}
	return true
}

// TestExpectPlanted: histories that gave the exact control a drift.
func TestExpectPlanted(t *testing.T) {
	second := int64(time.Second)
	minute := quota.Window{Kind: quota.Fixed, Length: time.Minute}
	rolling := quota.Window{Kind: quota.Rolling, Length: time.Minute}
	take := one(0, 0, 1, Admitted)
	refund := func(at int64) Event {
		return Event{Kind: Refund, Call: at, Reply: at + 1, Units: 1, TakeCall: take.Call, TakeReply: take.Reply}
	}
	early := time.Unix(600, 0)
	for _, c := range []struct {
		name    string
		window  quota.Window
		initial int64
		events  []Event
		at      int64
		want    Interval
	}{
		{"rolling, expired", rolling, 0, []Event{take}, 61 * second, Interval{0, 0}},
		{"rolling, not yet", rolling, 0, []Event{take}, 59 * second, Interval{1, 1}},
		{"rolling, refund after its take has left", rolling, 0, []Event{take, refund(70 * second)}, 80 * second,
			Interval{0, 0}},
		{"rolling, refund in time, read after", rolling, 0, []Event{take, refund(50 * second)}, 80 * second, Interval{0, 0}},
		{"rolling, many that expired", rolling, 3, []Event{take, one(0, 30*second, 2, Admitted)}, 75 * second,
			Interval{2, 2}},
		{"rolling, initial units while they last", rolling, 3, nil, 59 * second, Interval{3, 3}},
		{"tumbling, refund after the window's end", minute, 0, []Event{take, refund(70 * second)}, 80 * second,
			Interval{0, 0}},
		{"tumbling, late refund beside one in force", minute, 0,
			[]Event{take, one(0, 65*second, 2, Admitted), refund(70 * second)}, 80 * second, Interval{2, 2}},
		{"tumbling, refund in time", minute, 0, []Event{take, refund(20 * second)}, 30 * second, Interval{0, 0}},
		{"tumbling, initial units are gone", minute, 3, nil, 80 * second, Interval{0, 0}},
		{"tumbling, initial units", minute, 3, nil, 20 * second, Interval{3, 3}},
		{"tumbling, of no known take", minute, 3, []Event{{Kind: Refund, Call: 5, Reply: 6, Units: 2}}, 20 * second,
			Interval{1, 3}},
		{"tumbling, of no known take, long ago", minute, 3, []Event{{Kind: Refund, Call: 5, Reply: 6, Units: 2}}, 80 * second,
			Interval{0, 0}},
		{"rolling, overrun of no known take", rolling, 3, []Event{{Kind: Commit, Call: 5, Reply: 6, Units: -2}}, 20 * second,
			Interval{3, 5}},
		{"rolling, of no known take, long ago", rolling, 0, []Event{{Kind: Refund, Call: 5, Reply: 6, Units: 2}}, 80 * second,
			Interval{0, 0}},
		{"taken and given back while it was read", quota.Window{}, 3, []Event{
			{Call: 18 * second, Reply: 20 * second, Units: 1},
			{Kind: Refund, Call: 20 * second, Reply: 20 * second, Units: 1, TakeCall: 18 * second, TakeReply: 20 * second},
		}, 20 * second, Interval{3, 4}},
		{"take at the epoch", rolling, 0, []Event{{Units: 2}, {Kind: Refund, Call: 5, Reply: 6, Units: 2}}, 20 * second,
			Interval{0, 0}},
		{"standing, of no known take", quota.Window{}, 3, []Event{{Kind: Refund, Call: 5, Reply: 6, Units: 2}}, 20 * second,
			Interval{1, 1}},
	} {
		cfg := Config{Window: c.window, Limit: 5, Epoch: early, Initial: func(s uint32) int64 { return c.initial * int64(s) }}
		got, ok, err := Expect(cfg, 1, c.events, Reading{c.at, c.at + 1}, quota.CountsAdmitted)
		if err != nil || !ok || got.Units != c.want || got.Held != c.want {
			t.Errorf("%s: %+v, known %v (%v), should be %+v", c.name, got, ok, err, c.want)
		}
	}
}

// TestExpectWithoutARule: a counter that counts nothing is never wrong, and an
// unknown way of counting is an error.
func TestExpectWithoutARule(t *testing.T) {
	got, ok, err := Expect(Config{}, 0, nil, Reading{}, quota.CountsNothing)
	if err != nil || !ok || got.Units.Distance(-1e15) != 0 || got.Units.Distance(1e15) != 0 ||
		got.Held.Distance(1e15) != 0 {
		t.Errorf("a counter of nothing: %+v, %v, %v", got, ok, err)
	}
	_, _, err = Expect(Config{}, 0, nil, Reading{}, "leases")
	if err == nil {
		t.Error("an unknown way of counting is judged")
	}
}

// expected is what [Expect] says of the only subject of a standing policy.
func expected(events []Event, at Reading, counts quota.Counting, initial int64) (units, surplus Interval, err error) {
	want, _, err := Expect(Config{Initial: func(uint32) int64 { return initial }}, 0, events, at, counts)
	return want.Units, want.Surplus, err
}

func TestPlantedDrift(t *testing.T) {
	var history []Event
	for i := range int64(50) {
		e := Event{Call: 10 * i, Reply: 10*i + 5, Units: 2}
		if i%10 == 0 {
			e.Outcome = Rejected
		}
		history = append(history, e)
	}
	rest := Reading{Call: 1000, Reply: 1005}
	got, _, err := expected(history, rest, quota.CountsAdmitted, 4)
	if err != nil || got != (Interval{94, 94}) {
		t.Fatalf("at rest %+v, %v", got, err)
	}
	for value, want := range map[int64]int64{94: 0, 91: -3, 99: 5} {
		if d := got.Distance(value); d != want {
			t.Errorf("a reading of %d drifts by %d, not %d", value, d, want)
		}
	}
	got, surplus, _ := expected(history, rest, quota.CountsAttempts, 4)
	if got != (Interval{104, 104}) || surplus != (Interval{10, 10}) {
		t.Errorf("attempts: %+v with a surplus of %+v", got, surplus)
	}
	history[10].Outcome = RejectedDegraded
	got, surplus, _ = expected(history, rest, quota.CountsAttempts, 4)
	if got != (Interval{102, 104}) || surplus != (Interval{8, 10}) {
		t.Errorf("attempts, one not seen: %+v with a surplus of %+v", got, surplus)
	}
	got, _, _ = expected(history, rest, quota.CountsAdmitted, 4)
	if got != (Interval{94, 96}) {
		t.Errorf("a degraded rejection may be counted: %+v", got)
	}
	got, _, err = expected(history, rest, quota.CountsNothing, 4)
	if err != nil || got.Distance(-1e15) != 0 || got.Width() <= 0 {
		t.Errorf("a counter of nothing: %+v, %v", got, err)
	}
	_, _, err = expected(history, rest, "leases", 4)
	if err == nil {
		t.Error("an unknown way of counting is judged")
	}
}
