package results_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/fixture"
	"github.com/quotabench/quotabench/results"
)

// generator is a copy of the fixture as one of three generators would leave it, with latencies of its own.
func generator(t *testing.T, part int, r *rand.Rand, all *results.Histogram) results.Named {
	t.Helper()
	f := fixture.New(1, fixture.Strategies[3])
	x := &f.Runs[0]
	x.Params.Generator, x.Params.RunID, x.Params.RatePerS = fmt.Sprintf("%d/3", part), "abc", 90
	x.Audit.Part(x.Params.Generator)
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
	f.Provenance.Host = results.Host{Name: fmt.Sprint("host-", part), CPUs: 2}
	f.Provenance.Time = f.Provenance.Time.Add(time.Duration(part) * time.Hour) // when it began to wait
	return results.Named{Name: fmt.Sprint("file-", part), File: f}
}

// TestMergeGenerators: the percentiles of the whole are those of one histogram with all samples, of each outcome too;
// a disturbed generator's are left out and no other's; the audit tells whose a finding is; nothing is decided yet.
func TestMergeGenerators(t *testing.T) {
	for _, disturbed := range []bool{false, true} {
		r, all, none := rand.New(rand.NewPCG(1, 2)), results.NewHistogram(), results.NewHistogram()
		files := []results.Named{generator(t, 1, r, all), generator(t, 2, r, all)}
		last := all
		if disturbed {
			last = none
		}
		files = append(files, generator(t, 3, r, last))
		if disturbed {
			files[2].File.Runs[0].Audit.Discard("cpu-steal", results.DiscardsRound, "others had the processor")
		}
		f := merged(t, files...)
		x, one := &f.Runs[0], &files[0].File.Runs[0]
		if len(f.Runs) != 1 || x.Params.Generators != 3 || x.Params.Generator != "" || x.Params.Workers != 3*one.Params.Workers ||
			x.Params.RatePerS != 90 || x.Params.Subjects != one.Params.Subjects || x.Issued != 3*one.Issued || x.Admitted != 3*one.Admitted {
			t.Fatalf("%d runs, %+v", len(f.Runs), x.Params)
		}
		for q, got := range map[float64]int64{0.5: x.Service.P50, 0.9: x.Service.P90, 0.99: x.Service.P99, 0.999: x.Service.P999, 0.9999: x.Service.P9999} {
			if got != all.Quantile(q) {
				t.Errorf("disturbed %t: the quantile %g is %d, of all samples %d", disturbed, q, got, all.Quantile(q))
			}
		}
		if x.Service.Samples != all.Count() || len(x.Service.Parts) != 2 || !x.Audit.TimingsValid {
			t.Errorf("disturbed %t: %d samples of %d in %d parts, %+v", disturbed, x.Service.Samples, all.Count(), len(x.Service.Parts), x.Audit)
		}
		text := fmt.Sprint(x.Audit.Reasons)
		if strings.Contains(text, "generator 3/3: its latencies are left out") != disturbed || strings.Contains(text, "generator 1/3") ||
			strings.Contains(text, "has a part") {
			t.Errorf("disturbed %t: %s", disturbed, text)
		}
		if x.Audit.Valid || x.Audit.Sound() || x.Leak != (results.Leak{}) || f.Summaries[0].Invalid != 1 {
			t.Errorf("decided without a history: %+v, %+v", x.Leak, x.Audit)
		}
		judged := *x
		judged.Leak, judged.FalseRejects.LongestNS = results.Leak{Units: 40, Possible: 44}, 1000
		if x.Decide(&judged, 180*time.Microsecond, ""); !x.Audit.Valid || x.Leak.Units != 40 || x.FalseRejects.LongestNS != 0 ||
			x.ClockText() != "leak: certain 40, possible 44, clock error ±180µs" {
			t.Errorf("%+v, %s", x.Audit, x.ClockText())
		}
	}
}

// TestOthersThatAreGenerators: what generators use on one machine disturbs none of them.
func TestOthersThatAreGenerators(t *testing.T) {
	for _, foreign := range []float64{0, 0.2} {
		r, all := rand.New(rand.NewPCG(1, 2)), results.NewHistogram()
		files := []results.Named{generator(t, 1, r, all), generator(t, 2, r, all), generator(t, 3, r, all)}
		for i := range files {
			x := &files[i].File.Runs[0]
			files[i].File.Provenance.Host = results.Host{Name: "one", CPUs: 2}
			x.Cost.ClientCPU = 0.25 * 2 * float64(x.ElapsedNS) / float64(x.Issued) // a quarter of the machine
			x.OthersShare = 0.5
		}
		files[1].File.Runs[0].OthersShare += foreign
		x := merged(t, files...).Runs[0]
		if got := strings.Count(fmt.Sprint(x.Audit.Reasons), "its latencies are left out"); (got > 0) != (foreign > 0) || got > 1 || x.OthersShare != 0 {
			t.Errorf("foreign %g: %+v", foreign, x.Audit)
		}
	}
}

// TestGeneratorsOfOneRun: others do not become one run.
func TestGeneratorsOfOneRun(t *testing.T) {
	for want, change := range map[string]func(*results.Run){
		"is part 1/3 in file-1 and in file-2": func(x *results.Run) { x.Params.Generator = "1/3" },
		"are of different runs, abc and xyz":  func(x *results.Run) { x.Params.RunID = "xyz" },
		"they share no load":                  func(x *results.Run) { x.Params.Generator = "" },
	} {
		r, all := rand.New(rand.NewPCG(1, 2)), results.NewHistogram()
		files := []results.Named{generator(t, 1, r, all), generator(t, 2, r, all)}
		change(&files[1].File.Runs[0])
		if _, err := results.Merge(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, should say %q", err, want)
		}
	}
}

// TestGeneratorsJudgeGuarantees: clauses are undecided until all histories are judged, and then have the verdicts on these. One that has
// none stays undecided, and the audit says why.
func TestGeneratorsJudgeGuarantees(t *testing.T) {
	clause := func(formula, verdict string) results.Clause {
		return results.Clause{Property: "leak", Formula: formula, Bound: 5, Verdict: verdict}
	}
	r, all := rand.New(rand.NewPCG(1, 2)), results.NewHistogram()
	files := []results.Named{generator(t, 1, r, all), generator(t, 2, r, all), generator(t, 3, r, all)}
	for i := range files {
		x := &files[i].File.Runs[0]
		x.Guarantee = []results.Clause{clause("L", results.Undecided), clause("lost", results.Undecided), clause("any", results.NoPromise)}
		x.SyncPeriodNS, x.Readings = 7, map[string][][5]int64{"redis": {{1, 2, 3, 4, 1}}}
	}
	run := merged(t, files...).Runs[0]
	if g := run.Guarantee; len(g) != 3 || g[0].Verdict != results.Undecided || run.SyncPeriodNS != 0 || run.Readings != nil {
		t.Fatalf("before the histories: %+v", run)
	}
	judged := run
	judged.Guarantee = []results.Clause{clause("L", results.Broken)}
	judged.Drift, judged.Rolling = &results.Drift{Units: 3}, &results.Rolling{Units: 2}
	judged.Audit = results.Audit{Reasons: []results.Reason{{Code: "noted", Discards: results.DiscardsNothing}, {Code: "wrong", Discards: results.DiscardsCorrectness}}}
	run.Decide(&judged, 0, ": its clock is lost")
	if g := run.Guarantee; g[0].Verdict != results.Broken || g[1].Verdict != results.Undecided || g[2].Verdict != results.NoPromise ||
		run.Drift.Units != 3 || run.Rolling.Units != 2 {
		t.Errorf("%+v", run)
	}
	if a := &run.Audit; a.Valid || a.Has("noted") || !a.Has("wrong") ||
		strings.Count(fmt.Sprint(a.Reasons), "the leak of lost is undecided: not judged over several generators: its clock is lost") != 1 {
		t.Errorf("%+v", a)
	}
}
