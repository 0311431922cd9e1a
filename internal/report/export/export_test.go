package export_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/export"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// planted is a round whose figures are known.
func planted(label string, round int) results.Run {
	return results.Run{
		Identity: results.Identity{Strategy: "planted"}, Workload: "hot-key", Policy: "agent-api", Repetition: round,
		Params: results.Params{Label: label, Load: results.Load{Loop: codes.ClosedLoop, Workers: 4},
			Quota: results.Quota{Limit: 10}},
		Requests: results.Requests{Issued: 1000},
		Rates:    results.Rates{ElapsedNS: 5_000_000, ThroughputPerS: 200_000, ReferencePerS: 400_000},
		Correctness: results.Correctness{Leak: results.Leak{Units: 30}, FalseRejects: results.FalseRejects{},
			Drift: &results.Drift{}},
		Cost: results.Cost{ProbeCost: results.ProbeCost{Commands: 1.5, SQL: 0.25}}, Audit: results.Audit{Valid: true},
		Latencies: results.Latencies{Service: results.Latency{Distribution: results.Distribution{P99: 777}}},
	}
}

// lines are those of benchmarks.
func lines(f *results.File) (out []string) {
	for l := range strings.Lines(string(export.GoBench(f))) {
		if strings.HasPrefix(l, "Benchmark") {
			out = append(out, strings.TrimSuffix(l, "\n"))
		}
	}
	return out
}

func TestGoBench(t *testing.T) {
	f := &results.File{Kind: results.Measured,
		Provenance: results.Provenance{Host: results.Host{OS: "linux", CPUs: 4, Model: "A\nB"}},
		Runs:       []results.Run{planted("a:b=c d", 1)}}
	f.Stores = map[string]results.Store{"redis": {Kind: "process", Version: "7", Detail: "mine"}}
	want := "BenchmarkStrategies/strategy=a:b=c_d/workload=hot-key-4\t1000\t5000 ns/op\t0.5 decisions/INCR\t777 " +
		"p99-ns\t0.03 leak-units/op\t1.75 cmds/op\t0 false-rejects-%\t0 drift-%"
	if got := lines(f); len(got) != 1 || got[0] != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	head, _, _ := strings.Cut(string(export.GoBench(f)), "Benchmark")
	if want := "goos: linux\npkg: github.com/quotabench/quotabench\ncpu: A B\nredis: process 7; mine\nUnit " +
		"decisions/INCR better=higher\n"; !strings.HasPrefix(head, want) {
		t.Errorf("head %q", head)
	}
}

// What is promised to be 0 is left out as long as it is; the leak never is.
func TestZeroesThatArePromised(t *testing.T) {
	exact := []results.Clause{{Property: string(quota.PropertyLeak)}, {Property: string(quota.PropertyFalseReject)}}
	for name, c := range map[string]struct {
		change func(*results.Run)
		has    []string
		lacks  []string
	}{
		"exact": {func(r *results.Run) {
			r.Guarantee = exact
			r.Leak.Units = 0
		}, []string{"\t0 leak-units/op"}, []string{"false-rejects-%", "drift-%"}},
		"drifting": {func(r *results.Run) {
			r.Guarantee = exact
			r.Drift.Units = -1
			r.Drift.PctOfLimit = -10
		}, []string{"\t-10 drift-%"}, []string{"false-rejects-%"}},
		"broken": {func(r *results.Run) {
			r.Guarantee = exact
			r.FalseRejects = results.FalseRejects{Count: 1, PctOfValid: 5}
		}, []string{"\t5 false-rejects-%", "drift-%"}, nil},
		"leak allowed": {func(r *results.Run) {
			r.Guarantee = exact[1:]
		}, []string{"drift-%", "leak-units/op"}, []string{"false-rejects-%"}},
		"no counter": {func(r *results.Run) { r.Drift = nil }, []string{"\t0 false-rejects-%"}, []string{"drift-%"}},
	} {
		r := planted("a", 1)
		c.change(&r)
		line := strings.Join(lines(&results.File{Runs: []results.Run{r}}), "\n")
		for _, s := range c.has {
			if !strings.Contains(line, s) {
				t.Errorf("%s: no %s in %q", name, s, line)
			}
		}
		for _, s := range c.lacks {
			if strings.Contains(line, s) {
				t.Errorf("%s: %s in %q", name, s, line)
			}
		}
	}
}

// suspended is a round that did not happen as planned.
func suspended(label string, round int) results.Run {
	r := planted(label, round)
	r.Audit.Discard("stood-still", codes.DiscardsRound, "suspended")
	return r
}

// Rounds that are left out of timings are not compared with those that are kept.
func TestGoBenchLeavesOut(t *testing.T) {
	invalid := planted("a", 3)
	other := planted("a", 1)
	invalid.Audit.Discard("history-overflow", codes.DiscardsCorrectness, "too long")
	other.Params.Limit = 20
	f := &results.File{Kind: results.Measured, Runs: []results.Run{planted("a", 1), suspended("a", 2), invalid}}
	for round := 4; round <= 7; round++ {
		f.Runs = append(f.Runs, planted("a", round))
	}
	f.Runs = append(f.Runs, other)
	got := lines(f)
	if len(got) != 7 || strings.Contains(got[1], "ns/op") || !strings.Contains(got[1], "leak-units/op") {
		t.Errorf("%q", got)
	}
	if !strings.Contains(string(export.GoBench(f)), "# left out: a: the run is invalid: too long") {
		t.Errorf("the invalid run is not told of: %s", export.GoBench(f))
	}
	if !strings.Contains(got[0], "/limit=10\t") || !strings.Contains(got[6], "/limit=20\t") ||
		!strings.Contains(got[2], "ns/op") {
		t.Errorf("two settings have one name: %q", got)
	}
	// A disturbed round has its timings, and what other programs used.
	busy := planted("a", 1)
	busy.OthersShare = 0.71
	busy.Audit.Discard("machine-busy", codes.Disturbs, "planted")
	f.Runs = []results.Run{busy, planted("a", 2)}
	if got := lines(f); len(got) != 2 || !strings.Contains(got[0], "ns/op") ||
		!strings.Contains(got[0], "\t71 others-%") || strings.Contains(got[1], "others-%") {
		t.Errorf("%q", got)
	}
	open := planted("a", 1)
	open.Params.Loop = codes.OpenLoop
	open.Params.RatePerS = 50
	open.Response = &results.Latency{Distribution: results.Distribution{P99: 999}}
	beside := planted("a", 1)
	beside.Paced = &open
	f.Runs = []results.Run{beside}
	if got := lines(f); len(got) != 2 || strings.Contains(got[0], "loop=") ||
		!strings.Contains(got[1], "/loop=open\t1000\t777 p99-ns\t999 response-p99-ns\t") {
		t.Errorf("%q", got)
	}
}

// The percentiles of what was recorded are read back, as the plotter of HdrHistogram
// reads them: four figures to a line, comments with a number sign.
func TestHGRM(t *testing.T) {
	h := results.NewHistogram()
	for i := int64(1); i <= 1000; i++ {
		h.Record(i * 1000) // 1 to 1000 microseconds
	}
	h.Record(math.MaxInt64) // one out of range, in each round
	a := planted("a", 1)
	b := planted("a", 2)
	for _, r := range []*results.Run{&a, &b} {
		r.Service = fixture.Must[results.Latency](t)(h.Latency())
	}
	all, err := export.HGRM(&results.File{Runs: []results.Run{a, b}})
	if err != nil || len(all) != 1 || all[0].Name != "a-closed-service" {
		t.Fatalf("%+v, %v", all, err)
	}
	var total, half, most float64
	for l := range strings.Lines(string(all[0].Text)) {
		if strings.HasPrefix(l, "#") {
			continue
		}
		var row []float64
		for _, s := range strings.Fields(l) {
			if v, err := strconv.ParseFloat(s, 64); err == nil {
				row = append(row, v)
			}
		}
		if len(row) != 4 {
			continue
		}
		if row[1] == 0.5 {
			half = row[0]
		}
		most = row[0]
		total = row[2]
	}
	if math.Abs(half-501) > 1.5 || total != 2002 || math.Abs(most-3.6e9) > 3.6e6 {
		t.Errorf("half %v, %v values, the largest %v:\n%s", half, total, most, all[0].Text)
	}
	if !strings.HasPrefix(string(all[0].Text),
		"#[service time of a under hot-key, limit 10, closed loop, 2 rounds, in microseconds]\n") {
		t.Errorf("%.200s", all[0].Text)
	}
	if _, err := export.HGRM(&results.File{Runs: []results.Run{planted("a", 1)}}); err == nil {
		t.Error("no histogram, and no error")
	}
}

// read is a table as a spreadsheet has it, by the names of its columns.
func read(t *testing.T, b []byte, err error) (out []map[string]string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		m := map[string]string{}
		for i, cell := range row {
			m[rows[0][i]] = cell
		}
		out = append(out, m)
	}
	return out
}

func TestRunsCSV(t *testing.T) {
	hostile := planted(`=HYPERLINK("http://h","a"),b`, 2)
	hostile.Params.Unit = "@units"
	hostile.Drift.Units = -4
	hostile.ReferencePerS = 0
	hostile.Drift.PctOfLimit = -40
	f := fixture.Full(t)
	f.Runs = append(f.Runs[:2], planted("a", 1), hostile)
	b, err := export.RunsCSV(&f)
	rows := read(t, b, err)
	if len(rows) != 4 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, f := range figures.All() {
		if _, ok := rows[0][f.CSV]; f.CSV != "" && !ok {
			t.Errorf("%s has no column %s", f.Key, f.CSV)
		}
	}
	for name, want := range map[string]string{"leak_units": "30", "decisions_per_incr": "0.5", "service_p99_ns": "777",
		"response_p99_ns": "", "drift_units": "0", "commands": "1.5", "kind": "measured", "round": "1",
		"kept": "true", "kept_rounds": "1", "run_rounds": "1", "all_p99_ns": ""} {
		if got, ok := rows[2][name]; !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"strategy": `'=HYPERLINK("http://h","a"),b`, "unit": "'@units", "drift_units": "-4", "reference_per_s": "", "decisions_per_incr": ""} {
		if got := rows[3][name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestExplorationCSV(t *testing.T) {
	x := results.NewExploration()
	x.Searches = []*results.Search{
		{Strategy: "-a", Limit: 1, Clients: 2, Properties: []results.Property{"leak", "guarantee"},
			Faults:   []quota.Fault{"crash"},
			Findings: []results.Finding{{Property: "leak", Units: 3, Steps: make([]results.Step, 7), Token: "qb2.x"}}, Runs: 55},
		{Strategy: "b", Properties: []results.Property{"leak"}, Capped: "5 schedules"},
		{Strategy: "c", Properties: []results.Property{"leak"}, Withheld: []results.Withheld{{Code: "x"}}},
	}
	b, err := export.ExplorationCSV(&x)
	rows := read(t, b, err)
	if len(rows) != 4 {
		t.Fatalf("%d rows: %s", len(rows), b)
	}
	if r := rows[0]; r["strategy"] != "'-a" || r["outcome"] != "broken" || r["steps"] != "7" || r["units"] != "3" ||
		r["token"] != "qb2.x" || r["runs"] != "55" || r["faults_allowed"] != "crash" {
		t.Errorf("%v", r)
	}
	for i, want := range []string{"broken", "kept", "not found", "withheld"} {
		if got := rows[i]["outcome"]; got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	if rows[1]["steps"] != "" {
		t.Errorf("steps of what was not found: %v", rows[1])
	}
}

// TestRunsCSVKeptRounds: the latency of a strategy is that of the rounds that are kept, and
// every row says which these are.
func TestRunsCSVKeptRounds(t *testing.T) {
	for name, c := range map[string]struct {
		disturbed  int
		kept, last string
		interval   bool
	}{"one left out": {1, "6", "false", true}, "two left out": {2, "5", "false", false}} {
		f := fixture.New(7, fixture.Strategies[0])
		for i := range f.Runs[:c.disturbed] {
			f.Runs[6-i].Audit.Discard("stood-still", codes.DiscardsRound, "suspended")
		}
		b, err := export.RunsCSV(&f)
		rows := read(t, b, err)
		for i, row := range rows {
			if row["kept_rounds"] != c.kept || row["run_rounds"] != "7" || row["all_p99_ns"] == "" ||
				!strings.HasSuffix(row["all_p99"], map[bool]string{true: "]", false: "µs"}[c.interval]) ||
				(row["all_p99_lo_ns"] != "") != c.interval {
				t.Errorf("%s: row %d: %s of %s rounds, p99 %q", name, i, row["kept_rounds"], row["run_rounds"], row["all_p99_ns"])
			}
		}
		if rows[6]["kept"] != c.last || rows[0]["kept"] != "true" {
			t.Errorf("%s: the first row is kept: %s, the last: %s", name, rows[0]["kept"], rows[6]["kept"])
		}
	}
}
