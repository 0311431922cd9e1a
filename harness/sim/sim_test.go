package sim_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"

	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// config is a small simulation of the strategies.
func config(t testing.TB, list, policy, workload string) sim.Config {
	t.Helper()
	plan, err := harness.NewPlan(list, policy, workload)
	if err != nil {
		t.Fatal(err)
	}
	plan.Seed = 7
	return sim.Config{Plan: plan}
}

func run(t testing.TB, cfg sim.Config) *sim.Report {
	t.Helper()
	r, err := sim.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// valid fails the test unless the run counts.
func valid(t testing.TB, r *results.Run) {
	t.Helper()
	if !r.Audit.Valid {
		t.Fatalf("%s: %v", r.Params.Label, r.Audit.Reasons)
	}
}

func TestHotKey(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "all", "agent-api", "hot-key")
	cfg.Policy.Limit, cfg.Requests, cfg.Every = 50, testenv.Pick[int64](1_000, 2_000), 10*time.Millisecond
	selected, skipped := cfg.Split()
	if len(selected) == 0 {
		t.Fatal("nothing can be simulated")
	}
	report := run(t, cfg)
	racy := false
	for i := range report.Runs {
		r := &report.Runs[i]
		m, _ := strategies.Lookup(r.Strategy)
		valid(t, r)
		t.Logf("%-20s admitted %d leak %d crossings %d drift %v trace %s", r.Params.Label, r.Admitted, r.Leak.Units,
			r.Leak.Trials, r.Drift, r.Trace)
		if m.Control == strategies.ControlRacy {
			racy = racy || r.Leak.Units > 0
		}
		for _, c := range r.Guarantee {
			if c.Verdict == results.Broken {
				t.Errorf("%s: %s: %d is above %d", r.Params.Label, c.Property, c.Certain, c.Bound)
			}
		}
	}
	if !racy {
		t.Error("the racy control did not leak: callers do not overlap")
	}
	for s, why := range skipped {
		t.Logf("skipped %s: %s", s, why)
	}
}
