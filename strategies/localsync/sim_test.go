package localsync

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/results"
)

// simulate has instances share one subject's limit of 1,090 in a window of a minute, at 50
// requests per second that come at even distances.
func simulate(t *testing.T, strategy string, instances int, outages ...harness.Outage) results.Run {
	t.Helper()
	plan, err := harness.NewPlan(strategy, "1090 requests per fixed 1m", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Seed, plan.Load, plan.Arrivals, plan.Duration, plan.Outages = 1, harness.OpenAt(50), "constant", 55*time.Second, outages
	plan.Instances = instances
	plan.Stream.Set("subjects", 1)
	report, err := sim.Run(t.Context(), sim.Config{Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Runs[0]
	for _, c := range r.Guarantee {
		if c.Verdict == results.Broken {
			t.Errorf("%s on %d instances breaks %+v", strategy, instances, c)
		}
	}
	return r
}

// figure is a measure of the strategy's own.
func figure(t *testing.T, r *results.Run, name string) int64 {
	t.Helper()
	for _, m := range r.Meter {
		if m.Name == name {
			return m.Value
		}
	}
	t.Fatalf("no figure is called %s among %+v", name, r.Meter)
	return 0
}

// TestLeakGrows: the leak grows with the period and with the instances. It is at most what the
// others have admitted in two periods, and 0 if every request asks or there are no others.
func TestLeakGrows(t *testing.T) {
	for _, c := range []struct {
		what string
		runs []string // period, instances
	}{
		{"period", []string{"0s 4", "200ms 4", "1s 4", "4s 4", "15s 4", "30s 4"}},
		{"instances", []string{"4s 1", "4s 2", "4s 4", "4s 8"}},
	} {
		last := int64(-1)
		for _, run := range c.runs {
			var instances int
			var period string
			if _, err := fmt.Sscan(run, &period, &instances); err != nil {
				t.Fatal(err)
			}
			r := simulate(t, "local-sync:period="+period, instances)
			leak := r.Leak.Units
			t.Logf("period %s, %d instances: %d over the limit", period, instances, leak)
			if leak <= last || (last < 0) != (leak == 0) {
				t.Errorf("period %s, %d instances: %d over the limit, after %d with less", period, instances, leak, last)
			}
			if most := 2 * int64(instances-1) * figure(t, &r, "unsynced, most"); leak > most {
				t.Errorf("period %s, %d instances: %d over the limit, and the others admitted %d in two periods", period, instances, leak, most)
			}
			last = leak
		}
	}
}

// TestOutage: what is admitted while Redis is away reaches it afterwards, or is lost. Both are
// seen in the count.
func TestOutage(t *testing.T) {
	away := harness.Outage{Store: "redis", From: 0.1, To: 0.2}
	for _, lost := range []string{"again", "drop"} {
		r := simulate(t, "local-sync:lost="+lost, 2, away)
		dropped := figure(t, &r, "dropped")
		if (dropped > 0) != (lost == "drop") || (figure(t, &r, "repeated") > 0) != (lost == "again") {
			t.Errorf("lost=%s: %+v", lost, r.Meter)
		}
		for _, d := range r.Drift.Tiers {
			if d.Units != -dropped {
				t.Errorf("lost=%s: %+v, and %d units were dropped", lost, d, dropped)
			}
		}
		if len(r.Drift.Tiers) != 2 {
			t.Errorf("lost=%s: %+v", lost, r.Drift)
		}
	}
}
