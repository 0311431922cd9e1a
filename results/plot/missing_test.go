package plot

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/internal/fixture"
)

// plotText is all text of a plot, without line breaks.
func plotText(t *testing.T, plot func(results.File) (*Plot, error), f results.File) string {
	t.Helper()
	b := fixture.Must[[]byte](t)(fixture.Must[*Plot](t)(plot(f)).SVG())
	return strings.Join(strings.Fields(svgText(t, b)), " ")
}

// TestPlotsNameWhoIsMissing has one strategy for each reason to be missing.
func TestPlotsNameWhoIsMissing(t *testing.T) {
	f := fixture.New(3, fixture.Strategies[:6]...)
	for i := range f.Runs {
		switch r := &f.Runs[i]; r.Strategy {
		case "incr-expire-atomic":
			r.Service.StallsP99, r.Service.StallsP999 = 1, 0
		case "decr-literal":
			r.Service = results.Latency{Distribution: results.Distribution{StallsP99: -1, StallsP999: -1}}
		case "check-then-set":
			r.Audit.Strike("x", results.StrikesCorrectness, "y")
		case "lua-reserve":
			r.Audit.Strike("x", results.StrikesTimings, "y")
		case "redis-hash":
			if r.Repetition == 2 {
				r.Audit.Strike("x", results.StrikesCorrectness, "y")
			}
		}
	}
	for name, c := range map[string]struct {
		plot  func(results.File) (*Plot, error)
		wants []string
	}{
		"latency": {Latency, []string{"No p99 (fewer than 5 separate stalls behind it): incr-expire-atomic.", "Not shown (no samples): decr-literal.",
			"lua-reserve !", "! discarded by the audit", "Timings stand, decisions do not (invalid): check-then-set."}},
		"leak": {Leak, []string{"No dot (p99: fewer than 5 separate stalls behind it): incr-expire-atomic.", "No dot (p99: no samples): decr-literal.",
			"No dot (invalid): check-then-set.", "Faint dot (the audit discarded its p99): lua-reserve.", "Some rounds left out (invalid): redis-hash."}},
	} {
		text := plotText(t, c.plot, f)
		for _, want := range c.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: nothing about %q in %s", name, want, text)
			}
		}
	}
}

// TestLeakPlotVerdict: what a strategy promises about false rejects says nothing
// about its leak.
func TestLeakPlotVerdict(t *testing.T) {
	for _, c := range []struct {
		clauses []results.Clause
		want    string
	}{
		{[]results.Clause{{Property: "false-reject", Formula: "0", Verdict: results.Kept}}, "guarantees nothing about leaks"},
		{[]results.Clause{{Property: "leak", Formula: "L", Verdict: results.Kept}, {Property: "false-reject", Formula: "0", Verdict: results.Violated}}, "leak guarantee kept"},
		{[]results.Clause{{Property: "leak", Formula: "L", Verdict: results.Violated}, {Property: "false-reject", Formula: "0", Verdict: results.Kept}}, "leak guarantee VIOLATED"},
		{[]results.Clause{{Property: "leak", Formula: "L", Verdict: results.Undecided}}, "undecided or not exercised"},
	} {
		f := fixture.New(1, fixture.Strategies[8])
		f.Runs[0].Guarantee = c.clauses
		text := plotText(t, Leak, f)
		for _, s := range verdictStyles {
			if got := strings.Contains(text, s.name); got != (s.name == c.want) {
				t.Errorf("%v: legend has %q: %v", c.clauses, s.name, got)
			}
		}
	}
}
