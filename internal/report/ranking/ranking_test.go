package ranking_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// planted is a run of 10 trials with a limit of 50 that does all it should, with what
// change does to it.
func planted(label string, change func(*results.Run)) results.Run {
	r := results.Run{
		Identity: results.Identity{Strategy: label, Form: "reference"}, Policy: "agent-api", Workload: "hot-key",
		Repetition: 1,
		Params: results.Params{Label: label, Quota: results.Quota{Limit: 50, Unit: "requests"}, Load: results.Load{
			Loop: codes.ClosedLoop, Workers: 50,
			Instances: 2,
		}},
		Requests: results.Requests{Issued: 1000, Admitted: 500, Rejected: 500}, Rates: results.Rates{ThroughputPerS: 1000},
		Latencies: results.Latencies{Service: results.Latency{Distribution: results.Distribution{Samples: 1_000_000,
			P50: 100, P99: 1000, Max: 2000,
			StallsP99: -1, StallsP999: -1}}},
		Correctness: results.Correctness{Leak: results.Leak{Trials: 10, OverQuotaUnits: 500}},
		Promises:    results.Promises{Guarantee: []results.Clause{clause(string(quota.PropertyLeak), 0, 0, results.Kept)}},
		Audit:       results.Audit{Valid: true},
		Cost:        results.Cost{ProbeCost: results.ProbeCost{Commands: 1}},
		Stored:      []results.Stored{{Store: "redis"}},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func clause(property string, bound, worst int64, verdict string) results.Clause {
	return results.Clause{Property: property, Formula: "F", Bound: bound, Certain: worst, Possible: worst,
		Verdict: verdict}
}

// leak plants units over the limit, all of one window.
func leak(units int64) func(*results.Run) {
	return func(r *results.Run) {
		r.Admitted = r.Admitted + units
		r.Rejected = r.Rejected - units
		r.Leak.Units = units
		r.Leak.Possible = units
		r.Leak.WorstUnits = units
		r.Leak.LeakedTrials = 1
		r.Leak.Requests = units
	}
}

// reject plants requests that were rejected wrongly.
func reject(n int64) func(*results.Run) {
	return func(r *results.Run) {
		r.Admitted = r.Admitted - n
		r.Rejected = r.Rejected + n
		r.FalseRejects = results.FalseRejects{Count: n, Possible: n, Units: n}
	}
}

// neverGiven plants the room that wrong rejections, each of so many units, kept from callers for good.
func neverGiven(units, each int64) func(*results.Run) {
	return func(r *results.Run) {
		r.FalseRejects.Units = r.FalseRejects.Count * each
		r.FalseRejects.NeverGiven = &units
	}
}

func declare(clauses ...results.Clause) func(*results.Run) {
	return func(r *results.Run) { r.Guarantee = clauses }
}

func timeOuts(r *results.Run) {
	r.Errors = 500
	r.ErrorKinds = &results.ErrorKinds{TimeOuts: 500}
}

func busy(r *results.Run) { r.Audit.Discard("machine-busy", codes.Disturbs, "planted") }

// slower is what a busy machine does to a bare client.
func slower(r *results.Run) { r.Audit.Discard("reference-drift", codes.Disturbs, "planted") }

// openTimeOuts are those of the open loop next to the run.
func openTimeOuts(r *results.Run) {
	p := planted("p", timeOuts)
	r.Paced = &p
}

// TestGroups plants what puts a strategy into each group.
func TestGroups(t *testing.T) {
	any := clause(string(quota.PropertyFalseReject), quota.Unbounded, 0, results.Kept)
	for name, c := range map[string]struct {
		plant  []func(*results.Run)
		want   ranking.Group
		reason string
	}{
		"nothing wrong": {nil, ranking.Enforces, "never over the limit in 10 windows (few)"},
		"evidence": {[]func(*results.Run){func(r *results.Run) {
			r.Leak.Trials = 30
		}}, ranking.Enforces, "never over the limit in 30 windows"},
		"one store declared": {[]func(*results.Run){declare(), func(r *results.Run) {
			r.NotPromised = []string{codes.SeveralRegions}
		}},
			ranking.Enforces, "never over the limit in 10 windows (few), but promises nothing under several regions"},
		"nothing declared": {[]func(*results.Run){declare()}, ranking.Enforces,
			"never over the limit in 10 windows (few), but declares no bound"},
		"one unit, exact clause": {[]func(*results.Run){leak(1),
			declare(clause(string(quota.PropertyLeak), 0, 1, results.Broken))}, ranking.Fails,
			"over-admits 0.20 % of the limit, 1 request in the worst window, and declares that none leak"},
		"one unit, by other clocks": {[]func(*results.Run){leak(1)}, ranking.Fails,
			"over-admits 0.20 % of the limit, 1 request in the worst window, and declares that none leak"},
		"a leak, none declared": {[]func(*results.Run){leak(50), declare()}, ranking.Fails,
			"over-admits 10.0 % of the limit, 50 requests in the worst window, declares no bound"},
		"a leak within its bound": {[]func(*results.Run){leak(5),
			declare(clause(string(quota.PropertyLeak), 5, 5, results.Kept))}, ranking.Bounded,
			"over-admits 1.00 % of the limit, 5 requests in the worst window, bounded by 5 requests per window"},
		"a bound above a tenth": {[]func(*results.Run){leak(5),
			declare(clause(string(quota.PropertyLeak), 6, 5, results.Kept))}, ranking.Fails,
			"over-admits 1.00 % of the limit, 5 requests in the worst window, bounded by 6 requests per window, which is " +
				"more than 10 % of the limit"},
		"such a bound, and no leak": {[]func(*results.Run){declare(clause(string(quota.PropertyLeak), 6, 0, results.Kept))},
			ranking.Loose, "no leak found, bounded by 6 requests per window, which is more than 10 % of the limit"},
		"not promised here": {[]func(*results.Run){leak(1), declare(), func(r *results.Run) {
			r.NotPromised = []string{"outage"}
		}},
			ranking.Fails, "over-admits 0.20 % of the limit, 1 request in the worst window, promises nothing under outage"},
		"a leak beyond its bound": {[]func(*results.Run){leak(50),
			declare(clause(string(quota.PropertyLeak), 49, 50, results.Broken))}, ranking.Fails,
			"over-admits 10.0 % of the limit, 50 requests in the worst window, beyond the declared 49"},
		"a bound of all": {[]func(*results.Run){leak(50),
			declare(clause(string(quota.PropertyLeak), quota.Unbounded, 50, results.Kept))}, ranking.Fails,
			"over-admits 10.0 % of the limit, 50 requests in the worst window, declares no bound in this setting"},
		"a bound, and no leak": {[]func(*results.Run){declare(clause(string(quota.PropertyLeak), 5, 0, results.Kept))},
			ranking.Bounded, "no leak found, bounded by 5 requests per window"},
		"the strictest clause": {[]func(*results.Run){declare(clause(string(quota.PropertyLeak), 49, 0, results.Kept),
			clause(string(quota.PropertyLeak), 0, 0, results.Kept))}, ranking.Enforces, "never over the limit in 10 windows (few)"},
		"one wrong rejection": {[]func(*results.Run){reject(1)}, ranking.Fails,
			"rejects 0.20 % of valid requests, and declares no bound"},
		"declared rejections": {[]func(*results.Run){reject(125),
			declare(clause(string(quota.PropertyLeak), 0, 0, results.Kept), any)}, ranking.Bounded,
			"rejects 25.0 % of valid requests, as it declares"},
		"may reject": {[]func(*results.Run){declare(clause(string(quota.PropertyLeak), 0, 0, results.Kept), any)},
			ranking.Bounded, "may reject wrongly, as it declares"},
		"a broken clause": {[]func(*results.Run){reject(1),
			declare(clause(string(quota.PropertyFalseReject), 0, 1, results.Broken))}, ranking.Fails,
			"breaks its guarantee: false rejects of at most F, 1 request beyond it"},
		"rejects 89.8 %": {[]func(*results.Run){reject(449)}, ranking.Fails,
			"rejects 89.8 % of valid requests, and declares no bound"},
		"rejects 90 %": {[]func(*results.Run){reject(450)}, ranking.Unusable, "rejects 90.0 % of valid requests"},
		"rejects all, as declared": {[]func(*results.Run){reject(500), declare(any)}, ranking.Unusable,
			"rejects 100 % of valid requests"},
		"never gives 89.8 % of the room": {[]func(*results.Run){reject(450), neverGiven(440, 1)},
			ranking.Fails, "rejects 90.0 % of valid requests (room never given: 440 requests), and declares no bound"},
		"never gives 90 % of the room": {[]func(*results.Run){reject(450), neverGiven(450, 1)},
			ranking.Unusable, "rejects 90.0 % of valid requests (room never given: 450 requests)"},
		"never gives 90 % of the room, 3 units each": {[]func(*results.Run){reject(450), neverGiven(1350, 3)},
			ranking.Unusable, "rejects 90.0 % of valid requests (room never given: 1,350 requests)"},
		"never gives a third of it, 3 units each": {[]func(*results.Run){reject(450), neverGiven(450, 3)},
			ranking.Fails, "rejects 90.0 % of valid requests (room never given: 450 requests), and declares no bound"},
		"gives all room later, as declared": {[]func(*results.Run){reject(450), neverGiven(0, 1), declare(any)},
			ranking.Bounded, "rejects 90.0 % of valid requests (room never given: 0 requests), as it declares"},
		"errors": {[]func(*results.Run){func(r *results.Run) {
			r.Errors = 101
		}}, ranking.Unusable, "10.1 % of requests end in an error"},
		"all fail": {[]func(*results.Run){func(r *results.Run) {
			r.Errors = 1000
			r.Leak.Trials = 0
			r.FirstError = "CROSSSLOT Keys in request don't hash to the same slot"
		}}, ranking.Unusable, "100 % of requests end in an error: CROSSSLOT Keys in request don't hash to the same slot"},
		"time-outs": {[]func(*results.Run){timeOuts}, ranking.Unusable,
			"50.0 % of requests end in an error"},
		"time-outs of a busy machine": {[]func(*results.Run){timeOuts, busy}, ranking.Undecided,
			"50.0 % of requests timed out while the machine was busy"},
		"time-outs beside a slower bare client": {[]func(*results.Run){timeOuts, slower},
			ranking.Undecided, "50.0 % of requests timed out while the machine was busy"},
		"time-outs of a busy machine, nothing crossed": {[]func(*results.Run){timeOuts, busy, func(r *results.Run) {
			r.Leak.Trials = 0
		}},
			ranking.Undecided, "50.0 % of requests timed out while the machine was busy"},
		"time-outs in the open loop of a busy round": {[]func(*results.Run){busy, openTimeOuts},
			ranking.Undecided, "50.0 % of requests timed out while the machine was busy (in the open loop)"},
		"a leak on a busy machine": {[]func(*results.Run){leak(50), declare(), timeOuts, busy}, ranking.Fails,
			"over-admits 10.0 % of the limit, 50 requests in the worst window, declares no bound"},
		"other errors on a busy machine": {[]func(*results.Run){func(r *results.Run) {
			r.Errors = 500
		}, busy}, ranking.Unusable, "50.0 % of requests end in an error"},
		"a tenth of errors": {[]func(*results.Run){func(r *results.Run) {
			r.Errors = 100
		}}, ranking.Enforces, "never over the limit in 10 windows (few)"},
		"a planned outage": {[]func(*results.Run){func(r *results.Run) {
			r.Errors, r.ErrorKinds, r.Params.Trouble = 300, &results.ErrorKinds{Store: 200, TimeOuts: 100},
				trouble.MustParse("redis:away@0.3-0.6")
		}}, ranking.Enforces, "never over the limit in 10 windows (few)"},
		"rejects while away": {[]func(*results.Run){reject(126), func(r *results.Run) {
			r.Params.Trouble = trouble.MustParse("redis:away@0.3-0.6")
		}},
			ranking.Bounded, "rejects 25.2 % of valid requests while its store is away or after that"},
		"callers killed": {[]func(*results.Run){reject(126), func(r *results.Run) {
			r.Errors, r.ErrorKinds, r.Params.Trouble = 300, &results.ErrorKinds{Killed: 300},
				trouble.MustParse("callers:killed=0.3")
		}}, ranking.Bounded, "rejects 25.2 % of valid requests after callers were killed"},
		"leaks while away": {[]func(*results.Run){leak(1), declare(), func(r *results.Run) {
			r.Params.Trouble = trouble.MustParse("redis:away@0.3-0.6")
		}},
			ranking.Fails, "over-admits 0.20 % of the limit, 1 request in the worst window, declares no bound"},
		"invalid": {[]func(*results.Run){func(r *results.Run) {
			r.Audit.Discard("store-evicted", codes.DiscardsCorrectness, "redis evicted 3 keys")
		}}, ranking.Unusable, "its figures do not count: redis evicted 3 keys"},
		"too slow": {[]func(*results.Run){func(r *results.Run) {
			r.Audit.Discard(codes.NeverCrossed, codes.DiscardsCorrectness, "no subject was asked for more")
		}}, ranking.Undecided, "no subject was asked for more"},
		"nothing over": {[]func(*results.Run){func(r *results.Run) {
			r.Leak.Trials = 0
		}}, ranking.Undecided, "nothing was asked beyond the limit, so no leak could show"},
		"per process": {[]func(*results.Run){leak(5), declare(clause(string(quota.PropertyLeak), 5, 5, results.Kept)),
			func(r *results.Run) {
				r.PerProcess = true
			}},
			ranking.Bounded, "over-admits 1.00 % of the limit, 5 requests in the worst window, bounded by 5 requests per " +
				"window; counts per process"},
		"outside": {[]func(*results.Run){func(r *results.Run) {
			r.Outside = true
		}}, ranking.Enforces, "never over the limit in 10 windows (few); measured from outside"},
		"possible": {[]func(*results.Run){func(r *results.Run) {
			r.Leak.Possible = 7
		}}, ranking.Enforces, "never over the limit in 10 windows (few) for certain, and by at most 7 requests"},
		"baseline": {[]func(*results.Run){leak(500), func(r *results.Run) {
			r.Form = string(strategies.Baseline)
		}}, ranking.Baseline, "marks the floor or the ceiling"},
		"the open loop": {[]func(*results.Run){func(r *results.Run) {
			p := planted("x", leak(1))
			r.Paced = &p
		}}, ranking.Fails, "over-admits 0.20 % of the limit, 1 request in the worst window, and declares that none leak " +
			"(in the open loop)"},
	} {
		run := planted("x", func(r *results.Run) {
			for _, f := range c.plant {
				f(r)
			}
		})
		got := ranking.Of(results.File{Runs: []results.Run{run}})[0].Strategies[0]
		if got.Group != c.want || got.Reason != c.reason {
			t.Errorf("%s: %s: %s; want %s: %s", name, got.Group, got.Reason, c.want, c.reason)
		}
		if got.PerProcess != (name == "per process") {
			t.Errorf("%s: per process is %t", name, got.PerProcess)
		}
	}
}

// timed plants 8 rounds with a p99 in nanoseconds that varies a little, and commands.
func timed(label string, p99 int64, commands float64, more ...func(*results.Run)) []results.Run {
	var out []results.Run
	for i := range int64(8) {
		r := planted(label, func(r *results.Run) {
			r.Repetition = int(i) + 1
			r.Service.P99 = p99 + p99*i/50
			r.Cost.Commands = commands
			r.ThroughputPerS = 1e9 / float64(p99+p99*i/50)
			for _, f := range more {
				f(r)
			}
		})
		out = append(out, r)
	}
	return out
}

// TestCheapest: strategies that cannot be told apart go by the faults that they survive,
// and then by commands; others by speed.
func TestCheapest(t *testing.T) {
	alone := func(r *results.Run) { r.PerProcess = true }
	disturbed := func(r *results.Run) { r.Audit.Discard("machine-busy", codes.Disturbs, "planted") }
	mixed := func(r *results.Run) { // no faster in half of the rounds
		if r.Repetition%2 == 0 {
			r.ThroughputPerS *= 0.5
		}
	}
	hardy := func(r *results.Run) { r.Guarantee[0].Tolerates = []string{"crash", "retry"} }
	file := func(runs ...[]results.Run) ranking.Setting {
		var f results.File
		for _, r := range runs {
			f.Runs = append(f.Runs, r...)
		}
		return ranking.Of(f)[0]
	}
	for name, c := range map[string]struct {
		in   ranking.Setting
		want string
	}{
		"the faster":             {file(timed("slow", 2000, 1), timed("fast", 1000, 2)), "fast"},
		"fewer commands":         {file(timed("two", 1000, 2, mixed), timed("one", 1500, 1)), "one"},
		"not shared, if as fast": {file(timed("batch", 1000, 0.1, mixed), timed("one", 1500, 1)), "one"},
		"shared, if faster":      {file(timed("batch", 1000, 0.1), timed("one", 2000, 1)), "batch"},
		"more faults":            {file(timed("hardy", 1500, 2, hardy), timed("one", 1000, 1, mixed)), "hardy"},
		"hardy, but slow":        {file(timed("hardy", 2000, 2, hardy), timed("one", 1000, 1)), "one"},
		"also if disturbed":      {file(timed("two", 1000, 2, disturbed), timed("one", 4000, 1, disturbed)), "two"},
		"hardly fewer":           {file(timed("first", 1000, 1.02), timed("second", 1010, 1)), "first"},
		"not per process":        {file(timed("alone", 10, 0, alone), timed("shared", 1000, 1)), "shared"},
		"per process at last":    {file(timed("alone", 10, 0, alone), timed("leaks", 5, 1, leak(3))), "alone"},
		"not without commands":   {file(timed("idle", 10, 0), timed("shared", 1000, 1)), "shared"},
		"not without a promise":  {file(timed("none", 10, 1, declare()), timed("shared", 1000, 1)), "shared"},
		"none":                   {file(timed("leaks", 5, 1, leak(3)), timed("rejects", 5, 1, reject(500))), ""},
	} {
		got := ""
		if x := c.in.Cheapest(); x != nil {
			got = x.Label
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestFasterByTheMedian: if p99 tells nothing, the strategy with the lower median comes first, also
// if the other one has the lower p99 of all rounds together.
func TestFasterByTheMedian(t *testing.T) {
	paced := func(label string, p50, odd, even int64, tolerates ...string) (out []results.Run) {
		for round := range 8 {
			h := results.NewHistogram()
			for range 97 {
				h.Record(p50 + int64(round)*100)
			}
			for range 3 {
				h.Record([]int64{odd, even}[round%2])
			}
			l, err := h.Latency()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, planted(label, func(r *results.Run) {
				r.Repetition = round + 1
				r.Params.Loop = codes.OpenLoop
				r.Params.RatePerS = 1000
				r.Response = &l
				r.Guarantee[0].Tolerates = tolerates
			}))
		}
		return out
	}
	f := results.File{Kind: results.Measured,
		Runs: append(paced("steady", 150_000, 500_000, 500_000, "crash"), paced("quick", 100_000, 300_000, 900_000)...)}
	s := ranking.Of(f)[0]
	if s.Strategies[0].Label != "quick" || s.Strategies[0].Place != 1 || s.Strategies[1].Place != 2 {
		t.Errorf("%s in place %d comes before %s in place %d", s.Strategies[0].Label, s.Strategies[0].Place,
			s.Strategies[1].Label, s.Strategies[1].Place)
	}
}

// TestOrder: groups first, in each the faster one first.
func TestOrder(t *testing.T) {
	f := results.File{}
	for _, r := range [][]results.Run{timed("leaks", 1, 1, leak(3)), timed("rejects", 2, 1, reject(500)),
		timed("slow", 2000, 1), timed("fast", 1000, 1),
		timed("may", 1, 1, declare(clause(string(quota.PropertyLeak), 5, 0, results.Kept))),
		timed("all", 1, 1, func(r *results.Run) { r.Form = string(strategies.Baseline) })} {
		f.Runs = append(f.Runs, r...)
	}
	f.Runs = append(f.Runs, planted("elsewhere", func(r *results.Run) { r.Params.Limit = 7 }))
	a := ranking.Of(f)
	if len(a) != 2 {
		t.Fatalf("%d settings, want 2", len(a))
	}
	var got []string
	for _, x := range a[0].Strategies {
		got = append(got, x.Label)
	}
	if want := "fast slow may leaks rejects all"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	if first, second := a[0].Summaries(), a[1].Summaries(); first[0].Label != "fast" || second[0].Label != "elsewhere" {
		t.Errorf("the tables begin with %s and %s", first[0].Label, second[0].Label)
	}
	if got := in(a[0], ranking.Enforces); len(got) != 2 || got[1].Label != "slow" {
		t.Errorf("those that enforce are %+v", got)
	}
}

// TestOrderOfDamage: among those that do not enforce, the least leak comes first, however fast
// the others are.
func TestOrderOfDamage(t *testing.T) {
	leaks := func(units int64, perS float64) func(*results.Run) {
		return func(r *results.Run) {
			leak(units)(r)
			r.ThroughputPerS = perS
		}
	}
	a := ranking.Of(results.File{Kind: results.Measured, Runs: []results.Run{
		planted("most", leaks(80, 9000)), planted("least", leaks(20, 10)), planted("same", leaks(20, 5000)),
	}})
	var got []string
	for _, x := range in(a[0], ranking.Fails) {
		got = append(got, fmt.Sprint(x.Label, " ", x.Place))
	}
	if want := []string{"least 1", "same 1", "most 3"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
}

// TestConditions: what a promise depends on comes from its strictest bound, and the drift from
// what was read.
func TestConditions(t *testing.T) {
	a := ranking.Of(results.File{Kind: results.Measured, Runs: []results.Run{planted("a", func(r *results.Run) {
		c := clause(string(quota.PropertyLeak), 0, 0, results.Kept)
		c.Condition = "while no sync round has run"
		c.Tolerates = []string{"lost-reply", "retry", "clock", "outage", "limit", "failover"}
		r.Guarantee = []results.Clause{clause(string(quota.PropertyLeak), 5, 0, results.Kept), c}
		r.Drift = &results.Drift{Units: -3, Tiers: []results.TierDrift{{Tier: "redis", At: "rest", Units: -3, Readings: 1}}}
	})}})
	want := []string{
		"while no sync round has run", "it promises nothing under crash or eviction", "drift -3 requests at rest",
	}
	if got := a[0].Strategies[0].Conditions; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBrokenPromiseOfTheRecord: it is said of strategies of all groups, and changes no group.
func TestBrokenPromiseOfTheRecord(t *testing.T) {
	record := func(label, verdict string, change func(*results.Run)) results.Run {
		return planted(label, func(r *results.Run) {
			r.Record = []results.Clause{{Property: string(quota.PropertyLeak), Formula: "L", Source: "ADR-005", Says: "none", Certain: 12,
				Verdict: verdict}}
			change(r)
		})
	}
	a := ranking.Of(results.File{Kind: results.Measured, Runs: []results.Run{
		record("bounded", results.Broken, declare(clause(string(quota.PropertyLeak), 5, 0, results.Kept))),
		record("leaks", results.Broken, leak(12)),
		record("keeps", results.Kept, func(*results.Run) {}),
	}})
	want := "ADR-005 promises at most the limit, and 12 requests more were admitted"
	for _, x := range a[0].Strategies {
		group := map[string]ranking.Group{"bounded": ranking.Bounded, "leaks": ranking.Fails,
			"keeps": ranking.Enforces}[x.Label]
		if x.Group != group || (x.Broken == want) != (x.Label != "keeps") {
			t.Errorf("%s: %s, %q", x.Label, x.Group, x.Broken)
		}
	}
}

// TestUntested: what is missing is named with the command that tests it.
func TestUntested(t *testing.T) {
	open := func(stores map[string]results.Store, change func(*results.Run)) string {
		f := results.File{Kind: results.Measured, Stores: stores, Runs: []results.Run{planted("a:b=c", change)}}
		var out []string
		for _, u := range ranking.Of(f)[0].Untested {
			out = append(out, u.What+": "+u.Command)
		}
		return strings.Join(out, "\n")
	}
	redis := map[string]results.Store{"redis": {Kind: "process"}}
	const faults = "crashes, retries and other faults: quotabench explore a:b=c --faults all"
	for name, c := range map[string]struct {
		stores map[string]results.Store
		change func(*results.Run)
		want   string
	}{
		"one instance": {nil, func(r *results.Run) {
			r.Params.Instances = 1
		}, "more than one instance: quotabench run a:b=c --instances 4\n" + faults},
		"redis": {redis, nil, "failover of Redis: quotabench run a:b=c --redis process:replicas=1 --trouble " +
			"redis:failover@0.5-0.52\n" + faults},
		"no server": {map[string]results.Store{"redis": {Kind: "embedded"}}, nil,
			"failover of Redis, which needs a redis-server: quotabench run a:b=c --redis process:replicas=1 --trouble " +
				"redis:failover@0.5-0.52\n" + faults},
		"other policy": {nil, func(r *results.Run) {
			r.Policy = "login"
		}, "crashes, retries and other faults: quotabench explore a:b=c --policy login --faults all"},
		"two windows": {nil, func(r *results.Run) {
			r.Policy = "2-requests-per-fixed-10s"
			r.Params.Second = "20 requests per fixed 1h"
		}, "crashes, retries and other faults: quotabench explore a:b=c --policy '2-requests-per-fixed-10s and 20 requests " +
			"per fixed 1h' --faults all"},
		"failed over": {redis, func(r *results.Run) {
			r.Params.Trouble = trouble.MustParse("redis:failover@0.5-0.52")
		}, faults},
		"killed": {nil, func(r *results.Run) {
			r.Params.Trouble = trouble.MustParse("callers:killed=0.01")
		}, strings.Replace(faults, "crashes", "crashes at other steps", 1)},
		"no redis": {redis, func(r *results.Run) { r.Stored = nil }, faults},
		"all that is not a default": {nil, func(r *results.Run) {
			r.Policy = "5 attempts per rolling 15m"
			r.Workload = "steady"
			r.Params.Limit = 7
			r.Params.Workers = 8
			r.Params.Instances = 1
			r.Params.Pool = 3
			r.Params.Cold = true
			r.Params.Workload = map[string]string{"popularity": "zipf:1.1", "cost": "uniform:1-2"}
		}, "more than one instance: quotabench run a:b=c --policy '5 attempts per rolling 15m' --workload " +
			"steady:cost=uniform:1-2,popularity=zipf:1.1 --limit 7 --workers 8 --instances 4 --client " +
			"cold=true,pool=3\ncrashes, retries and other faults: quotabench explore a:b=c --policy '5 attempts per " +
			"rolling 15m' --faults all"},
		"an option with a mark": {nil, func(r *results.Run) {
			r.Params.Instances = 4
			r.Params.Label = "a:b=x@c"
		}, strings.Replace(faults, "a:b=c", "a:b=x@c", 1)},
		"an old record of a service": {nil, func(r *results.Run) {
			r.Outside = true
		}, "crashes, retries and other orders of its steps, which a service does not show: "},
		"not explored": {nil, func(r *results.Run) {
			r.NotExplored = "it keeps to itself"
		}, "crashes, retries and other orders of its steps, which cannot be explored: it keeps to itself: "},
		"faults": {redis, func(r *results.Run) {
			r.Params.Trouble = trouble.MustParse("redis:latency=2ms")
		}, "failover of Redis: \n" + faults},
		"a policy of a file": {nil, func(r *results.Run) {
			r.Params.Instances = 1
			r.Policy = "mine"
		}, "more than one instance: \n" + faults},
	} {
		if got := open(c.stores, c.change); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// in are the strategies of one group in their order.
func in(s ranking.Setting, g ranking.Group) []ranking.Strategy {
	return slices.DeleteFunc(slices.Clone(s.Strategies), func(x ranking.Strategy) bool { return x.Group != g })
}

// TestSaturatedRounds: a strategy that could not keep up in some of its rounds, as a busy machine has
// it, is not shown to be slower. One that could not in most rounds is.
func TestSaturatedRounds(t *testing.T) {
	for saturated, slower := range map[int]bool{0: false, 2: false, 7: true, 8: true} {
		var runs []results.Run
		for i := range 8 {
			for _, label := range []string{"a", "b"} {
				r := planted(label, nil)
				response := r.Service
				r.Repetition = i + 1
				r.Params.Loop = codes.OpenLoop
				r.Params.RatePerS = 1000
				r.Response = &response
				r.Lateness = &results.Lateness{Saturated: label == "b" && i < saturated}
				runs = append(runs, r)
			}
		}
		s := ranking.Of(results.File{Kind: results.Measured, Runs: runs})[0]
		places := map[string]int{}
		for _, x := range s.Strategies {
			places[x.Label] = x.Place
		}
		if (places["b"] > places["a"]) != slower || places["b"] < places["a"] {
			t.Errorf("saturated in %d of 8 rounds: places %v", saturated, places)
		}
	}
}
