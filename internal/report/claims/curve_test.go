package claims

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/results"
)

// TestFiguresHaveNames: a report says what each figure is.
func TestFiguresHaveNames(t *testing.T) {
	records := map[string]*Record{"a": planted(6), "b": planted(6)}
	for condition, want := range map[string]string{
		`a["fast"].leak > 1`:                                  "fast leak = ",
		`a["fast"].throughput / a["slow"].throughput > 1`:     "fast throughput / slow throughput = 4",
		`a["fast"].leak_worst + b["fast"].leak_worst > 1`:     "a fast worst window + b fast worst window = ",
		`max(a["slow"].meter["retries"].value, 3) > 1`:        "max(slow retries, 3) = ",
		`-(a["fast"].params.limit - 2) < share(1, 2) && 1==1`: "-(fast limit - 2) = ",
	} {
		if j := decide(t, condition, records); !strings.HasPrefix(j.Measured, want) {
			t.Errorf("%s shows %q, want %q", condition, j.Measured, want)
		}
	}
}

// sweptLeak is a simulation of three values, which leaks the square of each.
func sweptLeak() *Record {
	f := &results.File{Kind: results.Simulated,
		Sweep: &results.Sweep{Parameters: []results.Swept{{Name: "lag", Values: []string{"1", "2", "3"}}}}}
	for i, value := range f.Sweep.Parameters[0].Values {
		r := results.Run{Identity: results.Identity{Strategy: "s"}, Audit: results.Audit{Valid: true}}
		r.Params.Label = "s:lag=" + value
		r.Params.Point = map[string]string{"lag": value}
		r.Leak.Units = int64((i + 1) * (i + 1))
		f.Runs = append(f.Runs, r)
	}
	f.Summaries = results.Summarise(f.Runs)
	return &Record{File: f}
}

// TestCurve has the figure at each value, and the limit of the condition, also if another run decides.
func TestCurve(t *testing.T) {
	f, err := Parse("planted.yaml", []byte("record: R\nruns: {a: run a, s: 'sim s --param lag=1,2,3', x: explore x}\n"+
		"claims: [{id: X, says: something, holds: 'a[\"fast\"].leak_worst <= 4', curve: s.leak, schedule: x, named: units}]"),
		noted)
	if err != nil {
		t.Fatal(err)
	}
	j, err := f.Judge(&f.Claims[0], map[string]*Record{"a": planted(3), "s": sweptLeak()})
	if err != nil || j.Curve == nil || j.Curve.Limit == nil || !strings.HasPrefix(j.Measured, "units = ") {
		t.Fatalf("%+v, %v", j, err)
	}
	got := fmt.Sprintln(j.Curve.Parameter, *j.Curve.Limit, j.Curve.Simulated, j.Curve.Shown, j.Curve.Points)
	if want := "lag 4 true units [{1 1 1 1} {2 4 4 4} {3 9 9 9}]\n"; got != want {
		t.Errorf("the curve is %s, want %s", got, want)
	}
	for _, wrong := range []string{"curve: a.leak", "schedule: a"} {
		_, err := Parse("planted.yaml",
			[]byte("record: R\nruns: {a: run a}\nclaims: [{id: X, says: something, holds: a.leak == 0, "+wrong+"}]"), noted)
		if err == nil || !strings.Contains(err.Error(), "planted.yaml:3") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// TestEarlierRunsAreFoundByTheirCommands: two records call different runs "a", and one alone is judged again.
func TestEarlierRunsAreFoundByTheirCommands(t *testing.T) {
	parsed := func(record, command string) *File {
		f, err := Parse(record, []byte("record: "+record+"\nruns: {a: "+command+"}\nclaims: [{id: "+record+
			"1, says: s, holds: 'a[\"fast\"].leak_worst == 3'}]"), noted)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	one := parsed("A", "run slow")
	two := parsed("B", "run fast")
	var read []string
	p := &Pass{
		Files: []*File{one, two}, Begin: func(int, int, []string) {}, Read: func(dir string) *Record {
			read = append(read, dir)
			return planted(3)
		},
		Run: func(context.Context, []string) (int, string) { return 0, "" },
	}
	r, err := p.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read = nil
	again := &Pass{Files: []*File{two}, Earlier: r, Read: p.Read}
	if _, err := again.Judge(t.Context()); err != nil || fmt.Sprint(read) != "[a-2]" {
		t.Errorf("the runs of B were read from %q, %v", read, err)
	}
	again.Files = []*File{parsed("B", "run other")}
	r, err = again.Judge(t.Context())
	if err != nil || r.Claims[0].Verdict != Undecided || !strings.Contains(r.Claims[0].Why, "did not make") {
		t.Errorf("a run that was not made: %+v, %v", r.Claims[0], err)
	}
}
