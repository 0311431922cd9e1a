package sim_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
)

// TestLimitThatIsLoweredSlowly: until a store far away has the lower limit either one may
// be in force, for the series as for the verdict.
func TestLimitThatIsLoweredSlowly(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "three-tier-hardened:recall=0s", "agent-api", "steady")
	cfg.Topology.Regions = []string{"us", "eu", "ap"}
	cfg.Topology.Home = 0.95
	cfg.Policy.Limit, cfg.Load, cfg.Duration = 300, harness.OpenAt(100), 4*time.Minute
	cfg.Every = -1
	cfg.Trouble = trouble.MustParse("limit:is=200@0.4")
	cfg.Stream.Set("subjects", 100)
	cfg.Stream.Set("popularity", "zipf:1")
	report := run(t, cfg)
	r := &report.Runs[0]
	valid(t, r)
	if r.Leak.Units == 0 {
		t.Error("what was drawn under the higher limit is not admitted: nothing is tested")
	}
}

// TestPlantedOverwrite: somebody adds 500 to each count in Redis at 303 s, in which nothing else is ever wrong. Every
// reading is off by exactly that until the next round of reconcile, by 305 s, and by nothing after it; without
// reconcile it stays so.
func TestPlantedOverwrite(t *testing.T) {
	testenv.Sequential(t)
	cfg := asking(t, "three-tier:write=through,reconcile=5s", "agent-api")
	cfg.Load = harness.OpenAt(1)
	cfg.Duration = 10 * time.Minute
	cfg.Every = time.Second
	cfg.Stream.Set("subjects", 20)
	cfg.Policy.Limit = 5 // later all are rejected by counts that stay in Redis
	cfg.Trouble = trouble.MustParse("keys/quota:*:add=500@0.505")
	report := run(t, cfg)
	r := &report.Runs[0]
	series := report.Series[0]
	valid(t, r)
	if r.Overwritten < 1 || r.Drift.Units != 0 || len(r.Params.Trouble) != 1 || !r.Audit.Has("overwritten") {
		t.Errorf("%d values changed, drift %+v, audit %+v", r.Overwritten, r.Drift, r.Audit)
	}
	wrong := 0
	for _, s := range series.Samples {
		at := time.Duration(s.AtNS)
		c := s.Counters[0]
		switch during := at >= 303*time.Second && at <= 305*time.Second; {
		case c.Worst != 0 && (!during || c.Worst != 500 || c.Drift%500 != 0):
			t.Errorf("at %v the worst reading is off by %d, all by %d", at, c.Worst, c.Drift)
		case c.Worst != 0:
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no reading shows what was added")
	}

	// A counter that nobody corrects is off by what was added, at rest and for good, in whatever order the changes are
	// given.
	cfg = asking(t, "incr-expire", "user-links")
	cfg.Policy.Limit = 100_000
	cfg.Trouble = trouble.MustParse("keys/*:add=-3@0.75", "keys/*:add=10@0.5")
	r = &run(t, cfg).Runs[0]
	if r.Overwritten != 2 || r.Drift.Units != 7 {
		t.Errorf("%d values changed, drift %+v; want 2 and 7", r.Overwritten, r.Drift)
	}
	cfg.Trouble = trouble.MustParse("keys/nothing:add=10@0.5")
	r = &run(t, cfg).Runs[0]
	if r.Overwritten != 0 || r.Drift.Units != 0 || !r.Audit.Has("overwritten") {
		t.Errorf("no key matches: %d values changed, drift %+v", r.Overwritten, r.Drift)
	}
}
