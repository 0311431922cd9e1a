package figures

import (
	"testing"

	"github.com/quotabench/quotabench/results"
)

// TestFiguresOfParts: of two jobs the slower one counts, with the median of the rounds, and of three tiers the one that
// let most through.
func TestFiguresOfParts(t *testing.T) {
	var runs []results.Run
	for i, slowest := range []int64{400, 900, 500} {
		r := results.Run{Identity: results.Identity{Strategy: "s"}, Repetition: i, Audit: results.Audit{Valid: true},
			Correctness: results.Correctness{LeakTiers: map[string]int64{"a": 1, "b": 5, "c": 0}}}
		r.Jobs = []results.JobLatency{
			{Job: "quick", During: results.Distribution{Samples: 1000, P99: 100}},
			{Job: "slow", During: results.Distribution{Samples: 1000, P99: slowest}},
			{Job: "rare", During: results.Distribution{Samples: 3, P99: 1e9}},
		}
		runs = append(runs, r)
	}
	s := results.Summarise(runs)[0]
	for key, want := range map[string]float64{"job-p99": 500, "leak-tier": 15} {
		if got, err := Of(key).Value(&s); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", key, got, err, want)
		}
	}
	for key, want := range map[string]float64{"job-p99": 900, "leak-tier": 5} {
		if got, ok := Of(key).Round(&runs[1]); !ok || got != want {
			t.Errorf("%s of a round is %v, %t; want %v", key, got, ok, want)
		}
	}
	none := results.Summarise([]results.Run{{Identity: results.Identity{Strategy: "s"},
		Audit: results.Audit{Valid: true}}})[0]
	for _, key := range []string{"job-p99", "leak-tier"} {
		if got, err := Of(key).Value(&none); err == nil || Of(key).Text(&none, &Notes{}) != "" {
			t.Errorf("%s without any is %v", key, got)
		}
	}
}

// A round has the latency that callers wait for: the response time if the loop is open.
func TestLatencyOfARound(t *testing.T) {
	r := results.Run{Latencies: results.Latencies{Service: results.Latency{Distribution: results.Distribution{P50: 1,
		P90: 2, P99: 3, P999: 4, P9999: 5,
		Max: 6}}}}
	keys := []string{"p50", "p90", "p99", "p99.9", "p99.99", "max"}
	for i, key := range keys {
		if got, ok := Of(key).Round(&r); !ok || got != float64(i+1) {
			t.Errorf("%s of a round is %v, %t; want %d", key, got, ok, i+1)
		}
	}
	r.Response = &results.Latency{Distribution: results.Distribution{P50: 7}}
	if got, ok := Of("p50").Round(&r); !ok || got != 7 {
		t.Errorf("p50 of a round in open loop is %v, %t; want 7", got, ok)
	}
}

// A figure over rounds of which none has it is missing, and not 0: a gate on the ratio would have failed runs without a
// reference loop.
func TestFigureOfNoRound(t *testing.T) {
	run := results.Run{Identity: results.Identity{Strategy: "s"}, Rates: results.Rates{ThroughputPerS: 100},
		Audit: results.Audit{Valid: true}}
	s := results.Summarise([]results.Run{run})[0]
	if got, err := Of("ratio").Value(&s); err == nil || err.Error() != "there is no reference loop to divide by" {
		t.Errorf("the ratio without a reference loop is %v, %v", got, err)
	}
	run.ReferencePerS = 400
	s = results.Summarise([]results.Run{run})[0]
	if got, err := Of("ratio").Value(&s); err != nil || got != 0.25 {
		t.Errorf("the ratio is %v, %v; want 0.25", got, err)
	}
}
