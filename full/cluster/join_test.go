package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// sourceOf is a copy of the fixture as one of three generators would leave it, with latencies of its own.
func sourceOf(t *testing.T, part int, r *rand.Rand, all *results.Histogram) source {
	t.Helper()
	f := fixture.New(1, fixture.Strategies[3])
	x := &f.Runs[0]
	x.Params.RatePerS = 90
	var parts []results.Part
	for _, outcome := range []string{"admitted", "rejected"} {
		h := results.NewHistogram()
		for range 5000 {
			ns := r.Int64N(int64(part) * 10_000_000)
			h.Record(ns)
			all.Record(ns)
		}
		parts = append(parts, results.Part{Outcome: outcome, Tier: "redis", Histogram: h})
	}
	x.Service = fixture.Must[results.Latency](t)(results.LatencyOf(parts))
	x.Paced = nil
	return source{name: fmt.Sprintf("%d/3", part), host: results.Host{Name: fmt.Sprint("host-", part), CPUs: 2}, run: x}
}

// TestJoin: the percentiles of the whole are those of one histogram with all samples, of each outcome too; those of a
// generator that stood still are left out, those of a disturbed one mark the whole; the audit tells whose a finding is;
// nothing is decided yet.
func TestJoin(t *testing.T) {
	for finding, unplanned := range map[string]bool{"": false, codes.Disturbs: false, codes.DiscardsRound: true} {
		r := rand.New(rand.NewPCG(1, 2))
		all := results.NewHistogram()
		sources := []source{sourceOf(t, 1, r, all), sourceOf(t, 2, r, all)}
		last := all
		if unplanned {
			last = results.NewHistogram()
		}
		sources = append(sources, sourceOf(t, 3, r, last))
		if finding != "" {
			sources[2].run.Audit.Discard("planted", finding, "others had the processor")
		}
		x, err := joinRuns(sources)
		if err != nil {
			t.Fatal(err)
		}
		one := sources[0].run
		if x.Params.Sources != 3 || x.Params.Workers != 3*one.Params.Workers || x.Params.RatePerS != 90 ||
			x.Params.Subjects != one.Params.Subjects || x.Issued != 3*one.Issued || x.Admitted != 3*one.Admitted {
			t.Fatalf("%+v", x.Params)
		}
		if got, want := x.Cost.RoundTrips, one.Cost.RoundTrips; want == 0 || got < want*0.999 || got > want*1.001 {
			t.Errorf("%g round trips a decision, and %g of each generator", got, want)
		}
		for q, got := range map[float64]int64{0.5: x.Service.P50, 0.9: x.Service.P90, 0.99: x.Service.P99,
			0.999: x.Service.P999, 0.9999: x.Service.P9999} {
			if got != all.Quantile(q) {
				t.Errorf("%s: the quantile %g is %d, of all samples %d", finding, q, got, all.Quantile(q))
			}
		}
		if x.Service.Samples != all.Count() || len(x.Service.Parts) != 2 ||
			x.Audit.Disturbed() != (finding == codes.Disturbs) {
			t.Errorf("%s: %d samples of %d in %d parts, %+v", finding, x.Service.Samples, all.Count(), len(x.Service.Parts),
				x.Audit)
		}
		text := fmt.Sprint(x.Audit.Reasons)
		if strings.Contains(text, "generator 3/3: its latencies are left out") != unplanned ||
			strings.Contains(text, "generator 1/3") {
			t.Errorf("%s: %s", finding, text)
		}
		if x.Audit.Valid || x.Leak != (results.Leak{}) {
			t.Errorf("decided without a history: %+v, %+v", x.Leak, x.Audit)
		}
		judged := x
		judged.Leak = results.Leak{Units: 40, Possible: 44}
		judged.FalseRejects.LongestNS = 1_000_000
		judged.Audit = results.Audit{}
		takeVerdict(&x, &judged, 180*time.Microsecond, "")
		if !x.Audit.Valid || x.Leak.Units != 40 || x.FalseRejects.LongestNS != 640_000 ||
			clockText(&x) != "leak: certain 40, possible 44, clock error ±180µs" {
			t.Errorf("%+v, %s, %+v", x.Audit, clockText(&x), x.FalseRejects)
		}
	}
}

// TestOthersThatAreGenerators: what generators use on one machine disturbs none of them.
func TestOthersThatAreGenerators(t *testing.T) {
	for _, foreign := range []float64{0, 0.2} {
		r := rand.New(rand.NewPCG(1, 2))
		all := results.NewHistogram()
		sources := []source{sourceOf(t, 1, r, all), sourceOf(t, 2, r, all), sourceOf(t, 3, r, all)}
		for i := range sources {
			x := sources[i].run
			sources[i].host = results.Host{Name: "one", CPUs: 2}
			x.Cost.ClientCPU = 0.25 * 2 * float64(x.ElapsedNS) / float64(x.Issued) // a quarter of the machine
			x.OthersShare = 0.5
		}
		sources[1].run.OthersShare += foreign
		x, err := joinRuns(sources)
		got := strings.Count(fmt.Sprint(x.Audit.Reasons), "other programs used")
		if err != nil || (got > 0) != (foreign > 0) || got > 1 || x.OthersShare != 0 {
			t.Errorf("foreign %g: %v, %+v", foreign, err, x.Audit)
		}
	}
}

// TestVerdictOnClauses: clauses are undecided until all histories are judged, and then have the verdicts on these. One
// that has none stays undecided, and the audit says why.
func TestVerdictOnClauses(t *testing.T) {
	clause := func(formula, verdict string) results.Clause {
		return results.Clause{Property: "leak", Formula: formula, Bound: 5, Verdict: verdict}
	}
	r := rand.New(rand.NewPCG(1, 2))
	all := results.NewHistogram()
	sources := []source{sourceOf(t, 1, r, all), sourceOf(t, 2, r, all)}
	for i := range sources {
		sources[i].run.Guarantee = []results.Clause{clause("L", results.Undecided), clause("lost", results.Undecided),
			clause("any", results.NoPromise)}
	}
	run, err := joinRuns(sources)
	if g := run.Guarantee; err != nil || len(g) != 3 || g[0].Verdict != results.Undecided {
		t.Fatalf("before the histories: %v, %+v", err, run)
	}
	judged := run
	judged.Guarantee = []results.Clause{clause("L", results.Broken)}
	judged.Drift = &results.Drift{Units: 3}
	judged.Rolling = &results.Rolling{Units: 2}
	judged.Audit = results.Audit{Reasons: []results.Reason{{Code: "noted", Discards: codes.DiscardsNothing},
		{Code: "wrong", Discards: codes.DiscardsCorrectness}}}
	takeVerdict(&run, &judged, 0, ": its clock is lost")
	if g := run.Guarantee; g[0].Verdict != results.Broken || g[1].Verdict != results.Undecided ||
		g[2].Verdict != results.NoPromise ||
		run.Drift.Units != 3 || run.Rolling.Units != 2 {
		t.Errorf("%+v", run)
	}
	if a := &run.Audit; a.Valid || a.Has("noted") || !a.Has("wrong") ||
		strings.Count(fmt.Sprint(a.Reasons),
			"the leak of lost is undecided: not judged over several generators: its clock is lost") != 1 {
		t.Errorf("%+v", a)
	}
}

// TestWhoseFindings: the short form of a finding says what was seen, and on which generator.
func TestWhoseFindings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := results.NewHistogram()
	sources := []source{sourceOf(t, 1, r, all), sourceOf(t, 2, r, all)}
	sources[1].run.Audit.Observe("machine-busy", codes.Disturbs, "others had the processor", "it was busy")
	x, err := joinRuns(sources)
	if err != nil {
		t.Fatal(err)
	}
	found := x.Audit.Reasons[0]
	if found.Brief() != "generator 2/3: others had the processor" || found.Detail != found.Brief()+": it was busy" {
		t.Errorf("%+v", found)
	}
}
