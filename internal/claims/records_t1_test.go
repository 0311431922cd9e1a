package claims

import (
	"testing"

	"github.com/quotabench/quotabench/results"
)

// Percentiles of a part of the requests are times, shares are percent, and counters of a series have the names of stores.
func TestUnitsAndCounters(t *testing.T) {
	a := planted(3)
	for i := range a.File.Runs {
		a.File.Runs[i].Service.Parts = []results.LatencyPart{{Outcome: "rejected", Tier: "bloom", Distribution: results.Distribution{P50: 700}}}
	}
	a.Series = []results.Series{{Strategy: "slow", Counters: []string{"redis"}, Samples: []results.Sample{{Counters: []results.Counter{{Worst: -80}}}}}}
	for condition, want := range map[string]string{
		`median(a["slow"].runs.service_ns.parts["bloom"].p50) <= 10*us`: "700 ns",
		`share(a["slow"].rejected, 100 * a["slow"].rejected) < 9`:       "1.00 % (0.84 % to 1.19 %)",
		`min(a["slow"].series.redis.worst) >= 0 - 80`:                   "-80",
	} {
		if j := decide(t, condition, map[string]*Record{"a": a}); j.Verdict != Holds || j.Measured != want {
			t.Errorf("%s: %s %q, want %q", condition, j.Verdict, j.Measured, want)
		}
	}
}
