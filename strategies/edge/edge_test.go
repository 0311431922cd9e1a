package edge

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
)

var noon = time.Date(2031, time.March, 15, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

// TestReplicas follows one key through two regions.
func TestReplicas(t *testing.T) {
	r := &replicas{lag: time.Minute}
	reads := func(when time.Duration, region string, units int64, stale bool) int64 {
		t.Helper()
		w, s := r.get("k", region, at(when))
		if w.units != units || s != stale {
			t.Errorf("at %v in %s: %d units, stale %v; want %d, %v", when, region, w.units, s, units, stale)
		}
		return w.number
	}
	writes := func(when time.Duration, region string, units, read int64, lost bool) {
		t.Helper()
		if got := r.put("k", region, at(when), units, read); got != lost {
			t.Errorf("at %v in %s: %d units, lost %v; want %v", when, region, units, got, lost)
		}
	}
	reads(0, "a", 0, false)
	writes(0, "a", 5, 0, false)
	seen := reads(0, "a", 5, false)
	reads(time.Minute-1, "b", 0, true)
	writes(30*time.Second, "b", 7, 0, true) // b has not seen the 5
	reads(45*time.Second, "a", 5, true)
	writes(46*time.Second, "a", 6, seen, true)
	reads(time.Minute, "b", 7, true)          // its own is later than the 5
	reads(90*time.Second, "a", 6, false)      // its own is later than the 7
	reads(106*time.Second-1, "b", 7, true)    // 60 s after the 6, less a nanosecond
	reads(106*time.Second, "b", 6, false)     // the later one wins, the 7 is gone
	reads(106*time.Second, "c", 6, false)     // a region that wrote nothing
	if n := len(r.keys["k"].writes); n != 1 { // what all have seen is forgotten
		t.Errorf("%d writes are kept, want the last", n)
	}
	// A write from a clock that is behind comes before those that are there.
	writes(20*time.Second, "c", 9, 0, true)
	reads(200*time.Second, "b", 6, false)
}

// TestRaceWithinARegion: even one region has no compare-and-swap.
func TestRaceWithinARegion(t *testing.T) {
	sel := testkit.Strategy(t, "edge-kv")
	r, err := explore.Run(t.Context(), sel, explore.Config{Instances: 1, Properties: []explore.Property{explore.Leak}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Found(explore.Leak) == nil {
		t.Errorf("no leak in %d schedules of two callers in one region", r.Runs)
	}
}

// TestRegionsSpendTheLimitEach: with requests far apart, so that none race, one region
// keeps the limit, and each of three that hear of each other too late spends all of
// it. If a write is seen at once they keep it together.
func TestRegionsSpendTheLimitEach(t *testing.T) {
	leak := func(list string, regions ...string) int64 {
		t.Helper()
		plan, err := harness.NewPlan(list, "30 requests per calendar hour", "steady")
		if err != nil {
			t.Fatal(err)
		}
		plan.Seed, plan.Load, plan.Arrivals, plan.Duration = 1, harness.OpenAt(10), "constant", 50*time.Second
		plan.Stream.Set("subjects", 1)
		report, err := sim.Run(t.Context(), sim.Config{Plan: plan, Topology: sim.Topology{Regions: regions}})
		if err != nil {
			t.Fatal(err)
		}
		return report.Runs[0].Leak.Units
	}
	if n := leak("edge-kv", "a"); n != 0 {
		t.Errorf("one region leaks %d", n)
	}
	if n := leak("edge-kv:lag=0s", "a", "b", "c"); n != 0 {
		t.Errorf("three regions that see each other at once leak %d", n)
	}
	if n := leak("edge-kv", "a", "b", "c"); n != 60 {
		t.Errorf("three regions leak %d, want twice the limit", n)
	}
}
