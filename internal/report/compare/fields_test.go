package compare_test

import (
	"os"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/condition"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// TestFieldsAreDocumented: docs/comparing.md lists every field of searches. Those of runs are
// in docs/metrics.md, which a test of internal/report/figures holds.
func TestFieldsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../../docs/comparing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range condition.SearchFields([]results.Property{"leak"}) {
		if !strings.Contains(string(b), "`"+name+"`") {
			t.Errorf("%s is not in docs/comparing.md", name)
		}
	}
}

// TestEveryFieldCanBeGated evaluates each field, alone and by another one, on runs that have
// all there is and on runs that have little.
func TestEveryFieldCanBeGated(t *testing.T) {
	full := fixture.Full(t)
	least := results.File{Kind: results.Measured,
		Runs: []results.Run{{Identity: results.Identity{Strategy: "a"}, Audit: results.Audit{Valid: true}}}}
	var gates []compare.Gate
	for _, name := range figures.Keys() {
		for _, text := range []string{name + ">=0", name + "/leak-possible<0", name + "/reference>=0"} {
			g, err := compare.ParseRunGate(text)
			if err != nil {
				if !strings.Contains(text, "/reference") {
					t.Errorf("%s: %v", text, err)
				}
				continue
			}
			gates = append(gates, g)
		}
	}
	for _, f := range []*results.File{&full, &least} {
		for _, r := range compare.Check(f, gates) {
			if r.Verdict == compare.Inconclusive && r.Detail == "" {
				t.Errorf("%s of %s: no reason", r.Figure, r.Strategy)
			}
		}
	}
}

func TestParseGate(t *testing.T) {
	file := func(p99 int64) *results.File {
		f := record(one())
		for i := range f.Runs {
			f.Runs[i].Service.P99 = p99
			f.Runs[i].Reference = &results.Distribution{Samples: 1e6, P99: 1_000_000, StallsP99: 99}
		}
		return f
	}
	for text, want := range map[string]compare.Verdict{
		"leak=none": compare.Same, "leak <= none": compare.Same, "leak>0": compare.Worse, "leak=0": compare.Same,
		" leak  >=  0 ": compare.Same, "leak != 0": compare.Worse,
		"p99>2ms": compare.Same, "p99>3ms": compare.Worse, "p99<=2500000": compare.Same, "p99/reference>2": compare.Same,
		"p99/reference>2.6":         compare.Worse,
		"throughput/reference<0.01": compare.Worse, "throughput/reference<1": compare.Same, "p99/p50>1": compare.Same,
		"errors/leak>1":           compare.Invalid,
		"settlement-overrun=none": compare.Invalid,
	} {
		g, err := compare.ParseRunGate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if r := compare.Check(file(2_500_000), []compare.Gate{g})[0]; r.Verdict != want {
			t.Errorf("%s: %s, want %s (%s)", text, r.Verdict, want, r.Detail)
		}
	}
	// Waiting for a core is no reason to doubt. A disturbed time is an upper bound. What disturbed two timings of the
	// same rounds disturbed both, so that their quotient counts.
	for text, want := range map[string][2]compare.Verdict{
		"p99<3ms": {compare.Same, compare.Same}, "p99<2ms": {compare.Worse, compare.Invalid},
		"p99>3ms": {compare.Worse, compare.Worse}, "p99/reference>2": {compare.Same, compare.Same},
		"throughput/p99<1": {compare.Same, compare.Same}, "leak=none": {compare.Same, compare.Same},
	} {
		g, err := compare.ParseRunGate(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		f := file(2_500_000)
		for i := range f.Runs {
			f.Runs[i].Service.Waited = &results.Waited{P90: -1, P99: 0.8, P999: -1, P9999: -1}
		}
		if r := compare.Check(f, []compare.Gate{g})[0]; r.Verdict != want[0] {
			t.Errorf("waited, %s: %s, want %s (%s)", text, r.Verdict, want[0], r.Detail)
		}
		for i := range f.Runs {
			f.Runs[i].Audit.Discard("machine-busy", codes.Disturbs, "planted")
		}
		if r := compare.Check(f, []compare.Gate{g})[0]; r.Verdict != want[1] {
			t.Errorf("disturbed, %s: %s, want %s (%s)", text, r.Verdict, want[1], r.Detail)
		}
		s := results.Summarise(f.Runs)
		if held := g.At(f, &s[0]); held.Holds != (want[1] == compare.Same) || held.Unknown != (want[1] == compare.Invalid) {
			t.Errorf("disturbed, %s: %+v", text, held)
		}
	}
	// What may have leaked leaves open what did.
	for text, want := range map[string]compare.Verdict{
		"leak<=0": compare.Invalid, "leak<=3": compare.Same, "leak-possible<=3": compare.Same, "leak>3": compare.Worse,
		"leak<=0 || p99<3ms": compare.Same, "leak<=0 && p99>3ms": compare.Worse,
	} {
		g, err := compare.ParseRunGate(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		f := file(2_500_000)
		f.Runs[0].Leak.Possible = 3
		if r := compare.Check(f, []compare.Gate{g})[0]; r.Verdict != want {
			t.Errorf("with a leak of 0 to 3, %s: %s, want %s (%s)", text, r.Verdict, want, r.Detail)
		}
	}
	for text, want := range map[string]string{
		"": "no expression", "/leak>1": "no expression", "leak/>1": "no expression", "leak=>1": "no expression",
		"leak>": "give one such as leak<=0", "leak>x": "unknown field", "leak>NaN": "unknown field",
		"leak>1e999": "is no number", "leak>some": "unknown field",
		"leak":   "does not say what is required: give leak=none, or a bound such as leak<=2",
		"leek>1": "did you mean leak?", "leak/leek>1": "did you mean leak?", "leak/reference>1": "has no leak",
		"reference>1": "unknown field", "leak>5ms": "leak is no time: leave out ms",
	} {
		if _, err := compare.ParseRunGate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	g, err := compare.ParseRunGate("leak<=0")
	if err != nil {
		t.Fatal(err)
	}
	f := file(1)
	f.Runs[3].Audit.Discard("history-overflow", codes.DiscardsCorrectness, "full")
	if r := compare.Check(f, []compare.Gate{g})[0]; r.Verdict != compare.Invalid {
		t.Errorf("an invalid run passes: %+v", r)
	}
	if r := compare.CheckSearches(explored(searched("a", nil)), []compare.Gate{g})[0]; r.Verdict != compare.Invalid {
		t.Errorf("a condition on runs passes on searches: %+v", r)
	}
}
