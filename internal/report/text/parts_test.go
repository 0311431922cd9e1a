package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// cell returns what the table shows of a strategy in the section with that
// heading, as words.
func cell(t *testing.T, f results.File, heading, strategy string) []string {
	t.Helper()
	_, section, ok := strings.Cut(render(t, f), "\n"+heading)
	section, _, _ = strings.Cut(section, "\n\n")
	for _, l := range strings.Split(section, "\n") {
		if words := strings.Fields(l); len(words) > 0 && words[0] == strategy {
			return words[1:]
		}
	}
	t.Fatalf("no row of %s in %s (section found: %v)", strategy, heading, ok)
	return nil
}

// TestErrorsCell: the errors of each kind are shown if any strategy had some.
func TestErrorsCell(t *testing.T) {
	shown := func(kinds *results.ErrorKinds, n int64) string {
		return errorsCell(&results.Summary{Requests: results.Requests{Issued: 10_000, Errors: n, ErrorKinds: kinds}})
	}
	for want, got := range map[string]string{
		"": shown(nil, 0), "1.20 %": shown(nil, 120),
		"1.20 % contention,\n0.10 % time-out": shown(&results.ErrorKinds{Contention: 120, TimeOuts: 10}, 130),
		"2.00 % store,\n0.010 % other":        shown(&results.ErrorKinds{Store: 200, Other: 1}, 201),
	} {
		if got != want {
			t.Errorf("shows %q, want %q", got, want)
		}
	}
	f := fixture.New(1, fixture.Strategies[:2]...)
	const heading = "CORRECTNESS"
	_, without, _ := strings.Cut(render(t, f), heading)
	f.Runs[1].Errors = 7
	f.Runs[1].ErrorKinds = &results.ErrorKinds{Contention: 7}
	_, with, _ := strings.Cut(render(t, f), heading)
	if strings.Contains(without, "errors") || !strings.Contains(with, "errors") || !strings.Contains(with, " contention") {
		t.Errorf("without errors:\n%s\nwith some:\n%s", without, with)
	}
}

// TestErrorOfAllRequests: an error that makes a strategy unusable is named in the table and in
// the answer.
func TestErrorOfAllRequests(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[:2]...)
	r := &f.Runs[1]
	r.Errors = r.Issued
	r.Admitted = 0
	r.Rejected = 0
	r.Form = "documented"
	r.ErrorKinds = &results.ErrorKinds{Other: r.Issued}
	r.FirstError = "reserving for hot-0: CROSSSLOT Keys in request don't hash to the same slot"
	r.FirstErrorCode = "CROSSSLOT"
	text := strings.Join(strings.Fields(render(t, f)), " ")
	answer, table, _ := strings.Cut(text, "CORRECTNESS")
	if !strings.Contains(table, "CROSSSLOT") ||
		!strings.Contains(answer, "100 % of requests end in an error: reserving for hot-0: CROSSSLOT Keys in request "+
			"don't hash") {
		t.Errorf("%s", text)
	}
}

func TestFalseRejectsCell(t *testing.T) {
	f := fixture.Cases()["uploads"]
	for strategy, want := range map[string]string{
		"incr-expire":        "0 %",       // explained in every round
		"lua-reserve":        "0..4.31 %", // in all but one, whose 9,000 stay possible
		"incr-expire-atomic": "0..31.0 %", // in none
	} {
		if got := strings.Join(cell(t, f, "CORRECTNESS", strategy), " "); !strings.Contains(got, ") "+want+" ") {
			t.Errorf("%s: %q, want %s", strategy, got, want)
		}
	}
}

func TestCostTables(t *testing.T) {
	f := fixture.Cases()["uploads"]
	// First, admitted and rejected: commands, trips, SQL, bytes of each.
	want := []string{"2", "5", "3", "320", "1", "2.5", "1.5", "170", "1.06", "1", "0", "101"}
	if got := cell(t, f, "COST, EXACT", "pg-check"); !slices.Equal(got, want) {
		t.Errorf("exact: %v, want %v", got, want)
	}
	got := cell(t, f, "COST, SAMPLED", "incr-expire")
	if want := []string{"1.05", "1.05", "0", "179", "14.0", "13.2", "3.25", "-", "21.0"}; !slices.Equal(got[:len(want)],
		want) {
		t.Errorf("sampled: %v, want %v", got, want)
	}
	bare := fixture.New(1, fixture.Strategies[0])
	bare.Runs[0].Cost = results.Cost{ProbeCost: results.ProbeCost{Commands: 1}} // nothing else is known
	out := render(t, bare)
	for _, no := range []string{"COST, EXACT", "CPU, µs", "run queue", "client:"} {
		if strings.Contains(out, no) {
			t.Errorf("shows %q, of which nothing is known", no)
		}
	}
}

func TestOpenLoopTables(t *testing.T) {
	f := fixture.Cases()["open"]
	f.Runs = slices.Clone(f.Runs)
	for i := range f.Runs {
		if r := &f.Runs[i]; r.Strategy == "pg-check" {
			l := *r.Lateness
			l.BacklogHalf = 100
			l.BacklogEnd = 100 + int64(r.Repetition)
			r.Lateness = &l
		}
	}
	got := strings.Join(cell(t, f, "SCHEDULING DELAY", "pg-check"), " ")
	if want := "4.00 µs 28.0 µs 0 0 100 107 7 of 7 rounds"; got != want {
		t.Errorf("releases: %q, want %q", got, want)
	}
	if out := render(t, f); strings.Contains(out, "INCR loop") {
		t.Error("an open loop's rate is compared with a closed loop's")
	}
}

func TestConcerned(t *testing.T) {
	for _, c := range []struct {
		who  []concern
		of   int
		want string
	}{
		{[]concern{{"a", 10, 10}, {"b", 10, 10}}, 2, "all strategies"},
		{[]concern{{"a", 7, 10}, {"b", 7, 10}}, 2, "all strategies, 7 of 10 rounds"},
		{[]concern{{"a", 3, 10}, {"b", 10, 10}}, 2, "all strategies, 3 to 10 of 10 rounds"},
		{[]concern{{"a", 3, 10}, {"b", 10, 10}}, 3, "a (3 of 10 rounds), b"},
		{[]concern{{"a", 1, 1}}, 1, "a"},
		{[]concern{{"a", 1, 3}, {"b", 3, 3}, {"a", 3, 3}, {"b", 3, 3}}, 6, "a (4 of 6 rounds), b"},
	} {
		if got := concerned(c.who, c.of); got != c.want {
			t.Errorf("%v of %d: %q, want %q", c.who, c.of, got, c.want)
		}
	}
}

// TestPromisesOfRecords stand below what is declared, with their source, in the same columns.
func TestPromisesOfRecords(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	f.Runs[0].Record = []results.Clause{{Property: string(quota.PropertyLeak), Formula: "L", Source: "ADR-008", Says: "none", Certain: 4,
		Possible: 4, Verdict: results.Broken}}
	got := cell(t, f, "PROMISES OF THE DESIGN RECORDS", "incr-expire")
	if want := "leak: L (ADR-008: none) 4 ≤ 0 links BROKEN"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.Runs[0].Guarantee = f.Runs[0].Record
	if report := render(t, f); !strings.Contains(report, "\nDECLARED") || !strings.Contains(report, "\n\nPROMISES OF") {
		t.Errorf("no empty line before them:\n%s", report)
	}
}

// TestGuaranteeOnOneLine: the formulas that strategies declare fit next to
// labels of ordinary length.
func TestGuaranteeOnOneLine(t *testing.T) {
	out := render(t, fixture.Cases()["uploads"])
	for _, want := range []string{"leak: L + (in flight - 1) x largest cost ",
		"false rejects: 0 while every request asks for one unit "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not on one line in\n%s", want, out)
		}
	}
}

// TestLateResponse: late releases mark the response times and leave service times alone.
func TestLateResponse(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	r := &f.Runs[0]
	response := r.Service
	r.Params.Loop = codes.OpenLoop
	r.Response = &response
	r.Audit.Discard("pacer-late", codes.DisturbsResponse, "x")
	s := results.Summarise(f.Runs)[0]
	var m figures.Notes
	if response, service := m.Percentile(s.Response.P50), m.Percentile(s.Service.P50); response != "~"+service ||
		strings.Contains(service, "~") {
		t.Errorf("response %q, service %q; want a mark on the first alone", response, service)
	}
}

// TestWhatDisturbedIsTold: a terminal says what disturbed timings, and how many findings there are.
func TestWhatDisturbedIsTold(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	f.Runs[0].Audit.Discard("cpu-steal", codes.Disturbs, "3.0 % was stolen")
	f.Runs[0].Audit.Discard("meter-lost", codes.DiscardsNothing, "a connection was lost")
	f.Summaries = nil
	var b strings.Builder
	if err := Brief(&b, layout.Page{}, f); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(b.String()), " ")
	if want := "1 finding on timings and 1 note: see report.txt or --verbose."; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}

// TestExcursionsAndOverruns: what only standing quotas and misjudged commits have
// shows if there is some.
func TestExcursionsAndOverruns(t *testing.T) {
	f := fixture.New(2, fixture.Strategies[0])
	for i := range f.Runs {
		r := &f.Runs[i]
		r.Settlement = &results.Settlement{Commits: 5, OverrunUnits: 40, Service: r.Service}
		r.Leak.Excursions = 3
		r.Leak.UnitSeconds = 1.25
	}
	got := cell(t, f, "SETTLEMENT", "incr-expire")
	if want := []string{"10", "0", "0", "0", "80", "6", "2.50"}; !slices.Equal(got[:len(want)], want) {
		t.Errorf("%v, want %v", got, want)
	}
	if out := render(t, fixture.Cases()["uploads"]); strings.Contains(out, "overrun") ||
		strings.Contains(out, "unit-seconds") {
		t.Error("columns without anything to show")
	}
}

// TestFiguresOfTheirOwn: what was counted is shown per decision too, a largest value
// is not, and a figure of 0 is left out.
func TestFiguresOfTheirOwn(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	r := &f.Runs[0]
	r.Admitted = 10
	r.Rejected = 30
	r.Meter = []results.Measure{{Name: "retries", Unit: "times", Value: 20},
		{Name: "depth", Unit: "charges", Kind: "most", Value: 41}, {Name: "failed", Unit: "units"},
		{Name: "lag", Unit: "us", Value: 60_000}, {Name: "wait", Unit: "µs", Value: 40_000}}
	_, section, _ := strings.Cut(render(t, f), "\nFIGURES OF THEIR OWN")
	section, _, _ = strings.Cut(section, "\n\n")
	rows := strings.Split(section, "\n")
	for i, want := range [][]string{{"incr-expire", "retries", "20", "times", "0.50", "2.00"}, {"depth", "41", "charges"},
		{"lag", "60.0", "ms", "time", "1.50", "ms", "6.00", "ms"},
		{"wait", "40.0", "ms", "time", "1.00", "ms", "4.00", "ms"}} {
		if got := strings.Fields(rows[len(rows)-4+i]); !slices.Equal(got, want) {
			t.Errorf("row %q, want %q in\n%s", got, want, section)
		}
	}
	if strings.Contains(section, "failed") {
		t.Errorf("a figure of 0 is shown:\n%s", section)
	}
}

// TestBoundOfNothing: a clause that nothing breaks shows no number.
func TestBoundOfNothing(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	f.Runs[0].Guarantee = []results.Clause{{Property: string(quota.PropertyFalseReject), Formula: "any", Bound: quota.Unbounded,
		Verdict: results.Kept}}
	if got, want := cell(t, f, "DECLARED GUARANTEES", "incr-expire"),
		[]string{"false", "rejects:", "any", "0", "none", "kept"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
