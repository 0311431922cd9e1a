package plot

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// plotText is all text of a plot, without line breaks.
func plotText(t *testing.T, plot func(results.File) (*Plot, error), f results.File) string {
	t.Helper()
	b := fixture.Must[[]byte](t)(fixture.Must[*Plot](t)(plot(f)).SVG())
	return readSVG(t, b).text
}

// TestPlotsNameWhoIsMissing has one strategy for each reason to be missing.
func TestPlotsNameWhoIsMissing(t *testing.T) {
	f := fixture.New(3, fixture.Strategies[:6]...)
	h := results.NewHistogram()
	for range 100 { // p99 needs 368
		h.Record(3_000_000)
	}
	few := fixture.Must[results.Latency](t)(h.Latency())
	for i := range f.Runs {
		switch r := &f.Runs[i]; r.Strategy {
		case "incr-expire-atomic":
			r.Service = few
		case "decr-literal":
			r.Service = results.Latency{Distribution: results.Distribution{StallsP99: -1, StallsP999: -1}}
		case "check-then-set":
			r.Audit.Discard("x", codes.DiscardsCorrectness, "y")
		case "lua-reserve":
			r.Audit.Discard("x", codes.DisturbsTimings, "y")
		case "redis-hash":
			if r.Repetition == 2 {
				r.Audit.Discard("x", codes.DiscardsCorrectness, "y")
			}
		}
	}
	for name, c := range map[string]struct {
		plot  func(results.File) (*Plot, error)
		wants []string
	}{
		"latency": {Latency, []string{"No p99 (too few samples): incr-expire-atomic.",
			"Not shown (no samples): decr-literal.",
			"~lua-reserve", "~ y: latencies are upper bounds.", "3 rounds, timings of 3 kept",
			"Timings stand, decisions do not (invalid): check-then-set."}},
		"leak": {Leak, []string{" ≥ 3.00 ms", "decr-literal, rejects 99.9 % wrongly", " no samples",
			"Not shown (invalid): check-then-set.", "~lua-reserve", "Some rounds left out (invalid): redis-hash."}},
	} {
		text := plotText(t, c.plot, f)
		for _, want := range c.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: nothing about %q in %s", name, want, text)
			}
		}
	}
}
