package oracle_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	_ "github.com/quotabench/quotabench/strategies/all"
)

const width = 1000 // nanoseconds of a window

func header(kind quota.Kind, limit int64) oracle.Header {
	w := quota.Window{Kind: kind}
	if kind.HasLength() {
		w.Length = width
	}
	return oracle.Header{Policy: quota.Policy{Limit: limit, Window: w}, Epoch: time.Unix(0, 0)}
}

// check writes the events to a file and checks that.
func check(t *testing.T, head oracle.Header, events ...oracle.Event) linearity {
	t.Helper()
	f := written(t, head, events)
	v, err := searchOrder(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func written(t *testing.T, head oracle.Header, events []oracle.Event) *oracle.File {
	t.Helper()
	h := oracle.NewHistory(oracle.HistoryOptions{Workers: 1, Limit: 1 << 20})
	for _, e := range events {
		h.Append(0, e)
	}
	name := filepath.Join(t.TempDir(), "h")
	to, err := os.Create(name)
	if err == nil {
		err = oracle.WriteHistory(to, head, h)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = to.Close()
	f, err := oracle.OpenHistory(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestAgreesWithCounting: on histories that the count of units decides, the search says the same.
func TestAgreesWithCounting(t *testing.T) {
	testenv.Sequential(t)
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[oracle.Linear]int{}
	for range 1000 {
		kind := []quota.Kind{quota.Standing, quota.Fixed}[r.IntN(2)]
		head := header(kind, r.Int64N(4))
		head.Initial = map[uint32]int64{0: r.Int64N(3)}
		var events []oracle.Event
		for range 1 + r.IntN(9) {
			call := r.Int64N(16) + width*r.Int64N(2)
			outcome := []oracle.Outcome{oracle.Admitted, oracle.Admitted, oracle.Rejected, oracle.Failed,
				oracle.RejectedDegraded}[r.IntN(5)]
			events = append(events, oracle.Event{Call: call, Reply: call + r.Int64N(9), Units: 1, Outcome: outcome,
				Subject: uint32(r.IntN(2))})
		}
		want := oracle.Judge(head.Config(), events).Linear
		got := check(t, head, events...)
		if !want.Decided || got.safe != answerOf(want.Safe) || got.exact != answerOf(want.Exact) {
			t.Fatalf("limit %d, %v: %+v, counting says %+v\n%+v", head.Policy.Limit, head.Initial, got, want, events)
		}
		seen[want]++
	}
	for _, l := range []oracle.Linear{{Decided: true}, {Decided: true, Safe: true},
		{Decided: true, Safe: true, Exact: true}} {
		if seen[l] < 60 {
			t.Errorf("only %d of %+v", seen[l], l)
		}
	}
}

// TestAgreesWithEveryOrder: with several units, units that come back, requests across boundaries and a limit that
// changes, the search says the same as trying every order.
func TestAgreesWithEveryOrder(t *testing.T) {
	testenv.Sequential(t)
	r := rand.New(rand.NewPCG(3, 4))
	seen := map[answer]int{}
	for range 700 {
		head := header([]quota.Kind{quota.Standing, quota.Fixed}[r.IntN(2)], 1+r.Int64N(4))
		head.Initial = map[uint32]int64{0: r.Int64N(2)}
		if r.IntN(3) == 0 {
			from := width - 8 + r.Int64N(12)
			head.Changes = []oracle.LimitChange{{From: from, To: from + r.Int64N(4), Limit: 1 + r.Int64N(4)}}
		}
		var events []oracle.Event
		for range 1 + r.IntN(5) {
			call := width - 8 + r.Int64N(12)
			e := oracle.Event{Call: call, Reply: call + r.Int64N(8), Units: 1 + r.Int64N(2)}
			e.Outcome = []oracle.Outcome{oracle.Admitted, oracle.Admitted, oracle.Admitted, oracle.Rejected,
				oracle.Failed}[r.IntN(5)]
			events = append(events, e)
			if e.Outcome == oracle.Admitted && r.IntN(2) == 0 {
				back := oracle.Event{Kind: oracle.Refund, Call: e.Reply, Units: e.Units, TakeCall: e.Call, TakeReply: e.Reply}
				back.Reply = back.Call + r.Int64N(6)
				if r.IntN(4) == 0 {
					back.Outcome = oracle.Failed
				}
				if r.IntN(4) == 0 {
					back.Kind = oracle.Commit
					back.Units = -1
				}
				events = append(events, back)
			}
		}
		v := check(t, head, events...)
		for exact, got := range map[bool]answer{false: v.safe, true: v.exact} {
			if got == undecided {
				seen[got]++
				continue
			}
			if want := answerOf(anyOrder(&head, events, exact)); got != want {
				t.Fatalf("exact %v: %v, should be %v; limit %d per %v, %v, %v\n%+v", exact, got, want, head.Policy.Limit,
					head.Policy.Window.Kind, head.Initial, head.Changes, events)
			}
			seen[got]++
		}
	}
	for _, a := range []answer{holds, fails, undecided} {
		if seen[a] < 30 {
			t.Errorf("only %d %s", seen[a], a)
		}
	}
}

// anyOrder tries every order and every moment that matters.
func anyOrder(head *oracle.Header, events []oracle.Event, exact bool) bool {
	if len(head.Changes) == 0 {
		return orderAt(head, events, exact, math.MaxInt64)
	}
	for c := head.Changes[0].From; c <= head.Changes[0].To; c++ {
		// A change at c comes before or after what else happens then.
		if orderAt(head, events, exact, 2*c-1) || orderAt(head, events, exact, 2*c+1) {
			return true
		}
	}
	return false
}

func orderAt(head *oracle.Header, events []oracle.Event, exact bool, changed int64) bool {
	window := func(t int64) int64 {
		if head.Policy.Window.Kind == quota.Standing {
			return 0
		}
		return t / width
	}
	done := make([]bool, len(events))
	home := make([]int64, len(events)) // of requests, the window that they were charged to
	var next func(now int64, used [3]int64) bool
	next = func(now int64, used [3]int64) bool {
		rest := false
		for i := range events {
			e := &events[i]
			if done[i] {
				continue
			}
			last := e.Reply
			if e.Outcome == oracle.Failed {
				last = width + 20 // nothing happens later
			} else {
				rest = true
			}
			for at := max(now, e.Call); at <= last && at < 2*width; at++ {
				limit := head.Policy.Limit
				if 2*at > changed {
					limit = head.Changes[0].Limit
				}
				w := window(at)
				then := used
				switch {
				case e.Kind != oracle.Take:
					then[home[i-1]] -= e.Units
					if !done[i-1] {
						continue
					}
				case e.Outcome == oracle.Rejected:
					if exact && used[w]+e.Units <= limit {
						continue
					}
				case e.Outcome == oracle.Failed && w > window(e.Reply):
				case used[w]+e.Units <= limit:
					then[w] += e.Units
				case e.Outcome == oracle.Admitted:
					continue
				}
				done[i] = true
				home[i] = w
				found := next(at, then)
				done[i] = false
				if found {
					return true
				}
			}
		}
		return !rest
	}
	return next(0, [3]int64{head.Initial[0]})
}

// TestLargeHistories: a counter that reads before it writes is found, and one that adds passes, in 10,000 requests of
// 64 callers.
func TestLargeHistories(t *testing.T) {
	for _, late := range []int64{0, 40} { // nanoseconds between the read and the write
		for _, kind := range []quota.Kind{quota.Fixed, quota.Standing} {
			head := header(kind, 30)
			head.Policy.Window.Length = 5000
			v := check(t, head, callers(late, kind == quota.Standing)...)
			want := answerOf(late == 0)
			if v.safe != want || v.exact != want {
				t.Errorf("%v, %d ns between read and write: %+v", kind, late, v)
			}
		}
	}
}

// callers are 10,000 requests of 64 callers for 1 to 3 units of 4 subjects, in virtual time.
func callers(late int64, back bool) (out []oracle.Event) {
	r := rand.New(rand.NewPCG(5, 6))
	type moment struct {
		at   int64
		step func()
	}
	var agenda []moment
	var used [4]map[int64]int64
	for i := range used {
		used[i] = map[int64]int64{}
	}
	at := func(t int64, step func()) { agenda = append(agenda, moment{t, step}) }
	begun := 0
	var request func(now int64)
	request = func(now int64) {
		begun++
		if begun > 10_000 {
			return
		}
		e := oracle.Event{Call: now, Subject: uint32(r.IntN(4)), Units: 1 + r.Int64N(3), Outcome: oracle.Rejected}
		counters := used[e.Subject]
		write := now + 1 + r.Int64N(50)
		window := int64(0)
		e.Reply = write + 1 + r.Int64N(50)
		if !back {
			window = write / 5000
		}
		at(write-min(late, write-now), func() {
			if counters[window]+e.Units <= 30 {
				e.Outcome = oracle.Admitted
			}
		})
		at(write, func() {
			if e.Outcome == oracle.Admitted {
				counters[window] += e.Units
			}
		})
		at(e.Reply, func() {
			out = append(out, e)
			if back && e.Outcome == oracle.Admitted {
				refund := oracle.Event{Kind: oracle.Refund, Call: e.Reply + r.Int64N(99), Units: e.Units, Subject: e.Subject,
					TakeCall: e.Call, TakeReply: e.Reply}
				refund.Reply = refund.Call + 2 + r.Int64N(50)
				at(refund.Call+1, func() { counters[window] -= e.Units })
				out = append(out, refund)
			}
			request(e.Reply + r.Int64N(9))
		})
	}
	for range 64 {
		request(0)
	}
	for len(agenda) > 0 {
		first := 0
		for i := range agenda {
			if agenda[i].at < agenda[first].at {
				first = i
			}
		}
		m := agenda[first]
		agenda = append(agenda[:first], agenda[first+1:]...)
		m.step()
	}
	return out
}

// TestPorcupinePlanted: one history for each rule of the counter.
func TestPorcupinePlanted(t *testing.T) {
	take := func(call, reply, units int64, o oracle.Outcome) oracle.Event {
		return oracle.Event{Call: call, Reply: reply, Units: units, Outcome: o}
	}
	first := take(0, 1, 2, oracle.Admitted)
	first.Call = 1
	back := oracle.Event{Kind: oracle.Refund, Call: 10, Reply: 11, Units: 2, TakeCall: 1, TakeReply: 1}
	gone := back
	lost := back
	unnamed := back
	gone.Kind = oracle.Expire
	lost.Outcome = oracle.Failed
	unnamed.TakeCall = 0
	unnamed.TakeReply = 0
	full := take(20, 21, 1, oracle.Rejected)
	again := take(20, 21, 2, oracle.Admitted)
	rider := take(width-5, width+5, 2, oracle.Admitted)
	undone := oracle.Event{Kind: oracle.Refund, Call: width + 6, Reply: width + 7, Units: 2, TakeCall: rider.Call,
		TakeReply: rider.Reply}
	for _, c := range []struct {
		name        string
		kind        quota.Kind
		events      []oracle.Event
		safe, exact answer
	}{
		{"full", quota.Standing, []oracle.Event{first, full}, holds, holds},
		{"one too many", quota.Standing, []oracle.Event{first, take(9, 9, 1, oracle.Admitted)}, fails, fails},
		{"rejected with room", quota.Standing, []oracle.Event{full}, holds, fails},
		{"a failed request holds the room", quota.Standing, []oracle.Event{take(0, 1, 2, oracle.Failed), full}, holds, holds},
		{"a failed request called later does not", quota.Standing, []oracle.Event{take(22, 23, 2, oracle.Failed), full},
			holds, fails},
		{"given back", quota.Standing, []oracle.Event{first, back, again}, holds, holds},
		{"given back, and rejected", quota.Standing, []oracle.Event{first, back, full}, holds, fails},
		{"given back at the moment of two answers", quota.Standing,
			[]oracle.Event{take(1, 5, 2, oracle.Admitted), take(2, 5, 2, oracle.Admitted),
				{Kind: oracle.Refund, Call: 5, Reply: 6, Units: 2, TakeCall: 2, TakeReply: 5}}, holds, holds},
		{"perhaps given back", quota.Standing, []oracle.Event{first, lost, again}, holds, holds},
		{"perhaps not", quota.Standing, []oracle.Event{first, lost, full}, holds, holds},
		{"the holder is gone, the store knows", quota.Standing, []oracle.Event{first, gone, again}, holds, holds},
		{"the store does not know yet", quota.Standing, []oracle.Event{first, gone, full}, holds, holds},
		{"given back of any request", quota.Standing, []oracle.Event{first, unnamed, again}, holds, holds},
		{"granted in part", quota.Standing,
			[]oracle.Event{first, take(2, 3, 0, oracle.Admitted), take(2, 3, 1, oracle.Short)}, holds, holds},
		{"too little granted", quota.Standing, []oracle.Event{take(2, 3, 1, oracle.Admitted), take(2, 3, 1, oracle.Short)},
			holds, fails},
		{"nothing granted with room for a part", quota.Standing, []oracle.Event{take(2, 3, 3, oracle.Short)}, holds, fails},
		{"two granted in part at once", quota.Standing,
			[]oracle.Event{take(2, 3, 1, oracle.Admitted), take(2, 3, 1, oracle.Admitted),
				take(2, 3, 5, oracle.Short), take(2, 3, 5, oracle.Short)}, holds, fails},
		{"another quota rejects", quota.Standing, []oracle.Event{take(2, 3, 1, oracle.Elsewhere)}, holds, holds},
		{"the next window is empty", quota.Fixed, []oracle.Event{first, take(width, width, 2, oracle.Admitted)}, holds,
			holds},
		{"either window", quota.Fixed, []oracle.Event{first, rider, take(width+6, width+6, 1, oracle.Rejected)}, holds,
			holds},
		{"neither window", quota.Fixed, []oracle.Event{first, rider, take(width, width, 1, oracle.Admitted)}, fails, fails},
		{"given back to either window", quota.Fixed, []oracle.Event{rider, undone}, undecided, undecided},
		{"given back to a window that is over", quota.Fixed,
			[]oracle.Event{first, {Kind: oracle.Refund, Call: width, Reply: width, Units: 2, TakeCall: 1, TakeReply: 1},
				take(width+1, width+1, 2, oracle.Admitted), take(width+2, width+2, 1, oracle.Admitted)}, fails, fails},
		{"no counter", quota.Rolling, []oracle.Event{first}, undecided, undecided},
	} {
		v := check(t, header(c.kind, 2), c.events...)
		if v.safe != c.safe || v.exact != c.exact || (v.why == "") != (v.exact != undecided) {
			t.Errorf("%s: safe %s, exact %s (%s)", c.name, v.safe, v.exact, v.why)
		}
	}
}

// TestWorse: one part that fails is enough, and one that is undecided leaves the others that hold undecided.
func TestWorse(t *testing.T) {
	for of, want := range map[[2]answer]answer{
		{holds, holds}: holds, {holds, fails}: fails, {fails, undecided}: fails, {undecided, fails}: fails,
		{undecided, holds}: undecided, {holds, undecided}: undecided,
	} {
		if got := worse(of[0], of[1]); got != want {
			t.Errorf("of %v: %s, want %s", of, got, want)
		}
	}
}

// TestEndedSearch: a search that was ended has no verdict.
func TestEndedSearch(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	two := oracle.Event{Call: 1, Reply: 2, Units: 2}
	want := linearity{safe: undecided, exact: undecided, parts: 1, why: "the time was up"}
	v, err := searchOrder(ended, written(t, header(quota.Standing, 2), []oracle.Event{two}))
	if err != nil || v != want {
		t.Errorf("%+v, %v, should be %+v", v, err, want)
	}
	cfg := (&oracle.Header{Policy: quota.Policy{Limit: 2}}).Config()
	p := split(&cfg, []oracle.Event{two})[0]
	s := search{ctx: t.Context(), left: 1}
	porcupine.CheckOperations(s.model(), p.operations(true))
	if s.why != "too many orders are possible" {
		t.Errorf("more states than may be kept: %q", s.why)
	}
}

// TestRuns: on histories of simulated runs, porcupine and the oracle agree whether some order explains all answers, and
// a certain leak has no such order.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		names, policy, workload string
		requests                int64
		want                    map[string]answer // if requests may be rejected although there is room
	}{
		{"check-then-set,incr-expire-atomic", "50 requests per fixed 1h", "hot-key", 10_000,
			map[string]answer{"check-then-set": fails, "incr-expire-atomic": holds}},
		{"app-lock,lua-reserve-hardened", "tenant-uploads", "uploads", 500,
			map[string]answer{"app-lock": holds, "lua-reserve-hardened": holds}},
	} {
		p, err := harness.NewPlan(c.names, c.policy, c.workload)
		if err != nil {
			t.Fatal(err)
		}
		p.Requests = c.requests
		p.Workers = 16
		p.Archive = t.TempDir()
		if _, err := sim.Run(t.Context(), sim.Config{Plan: p}); err != nil {
			t.Fatal(err)
		}
		for name, want := range c.want {
			agreeOnRun(t, filepath.Join(p.Archive, name+"-1.history"), want)
		}
	}
}

func agreeOnRun(t *testing.T, file string, want answer) {
	t.Helper()
	f, err := oracle.OpenHistory(file)
	if err != nil {
		t.Fatal(err)
	}
	v, err := searchOrder(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	judged, err := f.Judge()
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %+v; %+v, leak %d", filepath.Base(file), v, judged.Linear, judged.LeakUnits)
	if v.safe != want {
		t.Errorf("%s: %+v, want %s", file, v, want)
	}
	if l := judged.Linear; l.Decided && (v.safe != answerOf(l.Safe) || v.exact != answerOf(l.Exact)) {
		t.Errorf("%s: porcupine says %+v, the oracle %+v", file, v, l)
	}
	if judged.LeakUnits > 0 && v.safe == holds {
		t.Errorf("%s: %d units leaked, and porcupine has an order", file, judged.LeakUnits)
	}
}
