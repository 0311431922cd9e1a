package claims

import (
	"testing"

	"github.com/quotabench/quotabench/results"
)

// Percentiles of a part of the requests are times, shares are percent, and counters of a series have the names of
// stores.
func TestUnitsAndCounters(t *testing.T) {
	a := planted(3)
	for i := range a.File.Runs {
		a.File.Runs[i].Service.Parts = []results.LatencyPart{{Outcome: "rejected", Tier: "bloom",
			Distribution: results.Distribution{P50: 700}}}
	}
	a.Series = []results.Series{{Strategy: "slow", Counters: []string{"redis"},
		Samples: []results.Sample{{Counters: []results.Counter{{Worst: -80}}}}}}
	for condition, want := range map[string]string{
		`median(a["slow"].runs.service_ns.parts["bloom"].p50) <= 10*us`: "median(slow service bloom p50) = 700 ns",
		`share(a["slow"].rejected, 100 * a["slow"].rejected) < 9`:       "share(slow rejected, 100 * slow rejected) = 1.00 % (0.84 % to 1.19 %)",
		`min(a["slow"].series.redis.worst) >= 0 - 80`:                   "min(slow redis worst) = -80",
	} {
		if j := decide(t, condition, map[string]*Record{"a": a}); j.Verdict != Holds || j.Measured != want {
			t.Errorf("%s: %s %q, want %q", condition, j.Verdict, j.Measured, want)
		}
	}
}

// The form of a sweep's claim is shown at each value, as the figure is.
func TestFormOfASweep(t *testing.T) {
	r := planted(3)
	r.File.Sweep = &results.Sweep{Parameters: []results.Swept{{Name: "share", Values: []string{"0.5"}}}}
	for i := range r.File.Runs {
		r.File.Runs[i].Params.Point = map[string]string{"share": "0.5"}
	}
	r.File.Summaries = results.Summarise(r.File.Runs)
	f, err := Parse("planted.yaml",
		[]byte("record: R\nruns: {s: run a --param share=0..1}\nclaims: [{id: X, says: it, each: s, "+
			"holds: 's[\"slow\"].issued == 300', form: 's[\"slow\"].rejected / s[\"slow\"].issued'}]"), noted)
	if err != nil {
		t.Fatal(err)
	}
	j, err := f.Judge(&f.Claims[0], map[string]*Record{"s": r})
	if err != nil || j.Verdict != Holds || j.Measured != "slow issued = 300 at 0.5 ✓" ||
		j.Form != "slow rejected / slow issued = 0.4 at 0.5" {
		t.Errorf("%v: %+v", err, j)
	}
}
