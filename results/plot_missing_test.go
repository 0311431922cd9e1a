package results

import (
	"strings"
	"testing"
)

// plotText is all text of a plot, without line breaks.
func plotText(t *testing.T, plot func(File) (*Plot, error), f File) string {
	t.Helper()
	b := must[[]byte](t)(must[*Plot](t)(plot(f)).SVG())
	return strings.Join(strings.Fields(svgText(t, b)), " ")
}

// TestPlotsNameWhoIsMissing has one strategy for each reason to be missing.
func TestPlotsNameWhoIsMissing(t *testing.T) {
	f := fixture(3, fakes[:6]...)
	for i := range f.Runs {
		switch r := &f.Runs[i]; r.Strategy {
		case "incr-expire-atomic":
			r.Latency.StallsP99, r.Latency.StallsP999 = 1, 0
		case "decr-literal":
			r.Latency = Latency{StallsP99: -1, StallsP999: -1}
		case "check-then-set":
			r.Audit.Strike("x", StrikesCorrectness, "y")
		case "lua-reserve":
			r.Audit.Strike("x", StrikesTimings, "y")
		case "redis-hash":
			if r.Repetition == 2 {
				r.Audit.Strike("x", StrikesCorrectness, "y")
			}
		}
	}
	for name, c := range map[string]struct {
		plot  func(File) (*Plot, error)
		wants []string
	}{
		"latency": {LatencyPlot, []string{"No p99 (fewer than 5 separate stalls behind it): incr-expire-atomic.", "Not shown (no samples): decr-literal.",
			"lua-reserve !", "! struck by the audit", "Timings stand, decisions do not (invalid): check-then-set."}},
		"leak": {LeakPlot, []string{"No dot (p99: fewer than 5 separate stalls behind it): incr-expire-atomic.", "No dot (p99: no samples): decr-literal.",
			"No dot (invalid): check-then-set.", "Faint dot (the audit struck its p99): lua-reserve.", "Some rounds left out (invalid): redis-hash."}},
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
		clauses []Clause
		want    string
	}{
		{[]Clause{{Property: "false-reject", Formula: "0", Verdict: Kept}}, "promises nothing about leaks"},
		{[]Clause{{Property: "leak", Formula: "L", Verdict: Kept}, {Property: "false-reject", Formula: "0", Verdict: Violated}}, "leak promise kept"},
		{[]Clause{{Property: "leak", Formula: "L", Verdict: Violated}, {Property: "false-reject", Formula: "0", Verdict: Kept}}, "leak promise VIOLATED"},
		{[]Clause{{Property: "leak", Formula: "L", Verdict: Undecided}}, "undecided or not exercised"},
	} {
		f := fixture(1, fakes[8])
		f.Runs[0].Guarantee = c.clauses
		text := plotText(t, LeakPlot, f)
		for _, s := range verdictStyles {
			if got := strings.Contains(text, s.name); got != (s.name == c.want) {
				t.Errorf("%v: legend has %q: %v", c.clauses, s.name, got)
			}
		}
	}
}
