package text

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// TestEveryRowHasItsTimings: a run with every round disturbed prints p50, p99 and throughput of
// every row with their intervals, marked and with one sentence on what disturbed it. An
// undisturbed run prints the same figures without a mark.
func TestEveryRowHasItsTimings(t *testing.T) {
	for _, disturbed := range []bool{false, true} {
		f := fixture.New(8, fixture.Strategies...)
		for i := range f.Runs {
			r := &f.Runs[i]
			r.Audit = results.Audit{Valid: true, Reasons: []results.Reason{}}
			if disturbed {
				r.OthersShare = 0.71
				r.Audit.Discard("machine-busy", codes.Disturbs, "planted")
			}
		}
		f.Summaries = results.Summarise(f.Runs)
		out := render(t, f)
		for i := range f.Summaries {
			s := &f.Summaries[i]
			row := strings.Join(cell(t, f, "SPEED", s.Label), " ")
			for _, key := range []string{"p50", "p99", "throughput"} {
				shown := figures.Of(key).Timing(s)
				if strings.HasPrefix(shown.Value, "~") != disturbed || shown.Interval == "" || !strings.Contains(row, shown.Value) {
					t.Errorf("disturbed %t: %s of %s is %s, in the row %q", disturbed, key, s.Label, shown, row)
				}
			}
		}
		sentence := "~ other programs used 71 % of the processor: latencies are upper bounds"
		if strings.Contains(strings.Join(strings.Fields(out), " "), sentence) != disturbed ||
			strings.Contains(out, "~") != disturbed {
			t.Errorf("disturbed %t:\n%s", disturbed, out)
		}
	}
}

// TestFewSamplesGiveABound: a percentile with fewer samples than it needs is the bound that these
// give, and one without any is "-".
func TestFewSamplesGiveABound(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	h := results.NewHistogram()
	for range 100 {
		h.Record(12_000_000)
	}
	f.Runs[0].Service = fixture.Must[results.Latency](t)(h.Latency())
	s := results.Summarise(f.Runs)
	if got := figures.Of("p99").Timing(&s[0]).String(); got != "≥ 12.0 ms" {
		t.Errorf("p99 of 100 samples is %q", got)
	}
	f.Runs[0].Service = results.Latency{}
	s = results.Summarise(f.Runs)
	if got := figures.Of("p99").Timing(&s[0]).String(); got != "-" {
		t.Errorf("p99 of no sample is %q", got)
	}
}

// TestWaitForACore: if waiting for a core may explain a p99 in more than half of the rounds, the line
// below the table says by how much at most, and in how many.
func TestWaitForACore(t *testing.T) {
	for rounds, want := range map[int]string{
		5: "",
		6: "up to 4.20 ms of a p99 may be waiting for a core, in 6 of 10 rounds",
	} {
		f := fixture.New(10, fixture.Strategies[0])
		for i := range f.Runs {
			r := &f.Runs[i]
			r.Audit = results.Audit{Valid: true, Reasons: []results.Reason{}}
			r.Service.Waited = nil
			r.Waiting = &results.Waiting{Slices: []results.WaitingSlice{{LongestNS: 9_000_000}}}
			if i < rounds {
				r.Service.Waited = &results.Waited{P99: 0.9}
				r.Waiting.Slices[0].LongestNS = 4_000_000 + int64(i%2)*200_000
			}
		}
		if got := figures.Disturbance(results.Summarise(f.Runs)); got != want {
			t.Errorf("in %d rounds: %q, want %q", rounds, got, want)
		}
	}
}
