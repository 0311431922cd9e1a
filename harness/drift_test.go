package harness

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// reading is of a counter at one second.
func reading(subject uint32, tier string, units int64) Reading {
	return Reading{Subject: subject, Call: 1000 * ms, Reply: 1000*ms + 10, Tier: tier, Units: units, Known: true}
}

// TestPlantedDrift reads two tiers of four subjects at rest, and one of them again
// after jobs have run.
func TestPlantedDrift(t *testing.T) {
	f := planted(t, quota.Window{},
		takes(0, 0, 5, oracle.Admitted), takes(1, 0, 8, oracle.Admitted), []oracle.Event{take(1, 500, 3, oracle.Failed)},
		takes(2, 0, 4, oracle.Admitted), takes(3, 0, 1, oracle.Admitted))
	unknown := reading(2, "redis", 0)
	unknown.Known = false
	f.Readings = []Readings{
		{At: AtRest, List: []Reading{
			reading(0, "redis", 7),    // 5: two too many
			reading(1, "redis", 5),    // 8 to 11: three too few
			unknown,                   // 4, and nothing is held
			reading(3, "redis", 1),    // right
			reading(0, "process", 4),  // one too few
			reading(1, "process", 12), // one too many, and what may have failed
			reading(7, "redis", 99),   // of a subject without requests
		}},
		{At: AfterJobs, SettledNS: 77, List: []Reading{reading(0, "redis", 25)}},
	}
	r, _ := judged(t, f)
	want := &results.Drift{
		Units: -3, PctOfLimit: -30, PctOfUsage: 100 * -3. / 8,
		Tiers: []results.TierDrift{
			{Tier: "redis", At: "rest", Units: -3, Total: 5, PctOfLimit: -30, PctOfUsage: 100 * -3. / 8, Width: 3, Readings: 4,
				Unknown: 1, Drifting: 2, Stranded: 2, Lost: 3},
			{Tier: "process", At: "rest", Units: -1, Total: 2, PctOfLimit: -10, PctOfUsage: -20, Readings: 2, Drifting: 2,
				Stranded: 4, Lost: 1},
			{Tier: "redis", At: "after-jobs", Units: 20, Total: 20, PctOfLimit: 200, PctOfUsage: 400, Readings: 1, Drifting: 1,
				Stranded: 20, SettledNS: 77},
		},
	}
	if !reflect.DeepEqual(r.Drift, want) {
		t.Errorf("got  %+v\nwant %+v", r.Drift, want)
	}
}

// TestDriftOfAnyNumber: sums of counters that somebody overwrote with extreme numbers stay what a record can hold, and
// the audit says so.
func TestDriftOfAnyNumber(t *testing.T) {
	for _, units := range []int64{math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		f := planted(t, quota.Window{}, takes(0, 0, 5, oracle.Admitted), takes(1, 0, 8, oracle.Admitted))
		f.Readings = []Readings{{At: AtRest, List: []Reading{reading(0, "redis", units), reading(1, "redis", units)}}}
		r, _ := judged(t, f)
		drift := r.Drift.Tiers[0]
		far := drift.Stranded
		if units < 0 {
			far = drift.Lost
		}
		if drift.Total != math.MaxInt64 || far != math.MaxInt64 || drift.Drifting != 2 || (drift.Units < 0) != (units < 0) {
			t.Errorf("%d is read: %+v", units, drift)
		}
		if !r.Audit.Has("drift-saturated") {
			t.Errorf("%d is read: %+v", units, r.Audit)
		}
	}
}

// TestDriftOfALimitThatChanged: a reading at rest is a share of the limit in force then,
// and a leak one of the first limit.
func TestDriftOfALimitThatChanged(t *testing.T) {
	f := planted(t, quota.Window{}, takes(0, 0, 12, oracle.Admitted))
	f.LimitChanges = []oracle.LimitChange{{From: 600 * ms, To: 600 * ms, Limit: 100},
		{From: 800 * ms, To: 800 * ms, Limit: 50}}
	f.Readings = []Readings{{At: AtRest, List: []Reading{reading(0, "redis", 13)}}}
	r, _ := judged(t, f)
	if d := r.Drift; d.Units != 1 || d.PctOfLimit != 2 {
		t.Errorf("drift %+v, want 1 unit and 2 %% of 50", d)
	}
	if l := r.Leak; l.Units != 2 || l.PctOfLimit != 20 {
		t.Errorf("leak %+v, want 2 units and 20 %% of 10", l)
	}
}

// TestDriftOfTheLastWorst: of tiers that drift by the same amount, the last one is
// the run's.
func TestDriftOfTheLastWorst(t *testing.T) {
	f := planted(t, quota.Window{}, takes(0, 0, 5, oracle.Admitted))
	f.Readings = []Readings{{At: AtRest,
		List: []Reading{reading(0, "redis", 7), reading(0, "process", 3), reading(0, "bloom", 4)}}}
	r, _ := judged(t, f)
	if d := r.Drift; d.Units != -2 || d.PctOfLimit != -20 || d.PctOfUsage != -40 {
		t.Errorf("%+v", d)
	}
}

// TestDriftWithoutUsage: what a counter holds by design is no drift, and of a
// usage of 0 nothing is a share.
func TestDriftWithoutUsage(t *testing.T) {
	f := planted(t, quota.Window{}, takes(0, 0, 4, oracle.Rejected))
	f.Policy.Limit = 3
	f.Selection.Counts = quota.CountsAttempts
	f.Initial = func(uint32) int64 { return 0 }
	f.Readings = []Readings{{At: AtRest, List: []Reading{reading(0, "redis", 4), reading(0, "redis", 6)}}}
	r, _ := judged(t, f)
	want := results.TierDrift{Tier: "redis", At: "rest", Units: 2, Total: 2, PctOfLimit: 100 * 2. / 3, Readings: 2,
		Drifting: 1, Surplus: 8, Stranded: 2}
	if len(r.Drift.Tiers) != 1 || r.Drift.Tiers[0] != want {
		t.Errorf("got  %+v\nwant %+v", r.Drift.Tiers, want)
	}
}

// TestDriftOfUsageAndSurplus takes what is there by design from the usage that a
// drift is a share of.
func TestDriftOfUsageAndSurplus(t *testing.T) {
	f := planted(t, quota.Window{}, takes(0, 0, 10, oracle.Admitted), takes(0, 1000, 4, oracle.Rejected))
	f.Selection.Counts = quota.CountsAttempts
	f.Readings = []Readings{{At: AtRest, List: []Reading{reading(0, "redis", 15)}}}
	r, _ := judged(t, f)
	want := results.TierDrift{Tier: "redis", At: "rest", Units: 1, Total: 1, PctOfLimit: 10, PctOfUsage: 10, Readings: 1,
		Drifting: 1, Surplus: 4, Stranded: 1}
	if len(r.Drift.Tiers) != 1 || r.Drift.Tiers[0] != want {
		t.Errorf("got  %+v\nwant %+v", r.Drift.Tiers, want)
	}
}

// TestUndecidedReadings: a reading across a window's end counts for nothing, and a
// strategy that counts in an unknown way is an error.
func TestUndecidedReadings(t *testing.T) {
	f := planted(t, second, takes(0, 0, 5, oracle.Admitted))
	f.Readings = []Readings{{At: AtRest,
		List: []Reading{{Call: 999 * ms, Reply: 1001 * ms, Tier: "redis", Units: 77, Known: true}}}}
	r, _ := judged(t, f)
	if r.Drift == nil || len(r.Drift.Tiers) != 0 || r.Drift.Units != 0 {
		t.Errorf("%+v", r.Drift)
	}
	f.Selection.Counts = "guessed"
	var run results.Run
	if _, err := judge(&run, f, t.Context().Err, nil); err == nil ||
		!strings.Contains(err.Error(), "hold a counter against the truth: ") {
		t.Error(err)
	}
}
