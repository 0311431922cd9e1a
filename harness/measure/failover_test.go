package measure

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestFailover kills a real master in mid-run. The units of its last quarter are admitted once more by strategies that do not wait for the replica, and counters
// say so.
func TestFailover(t *testing.T) {
	testenv.Long(t)
	plan, err := harness.NewPlan("incr-expire,lua-reserve,redis-wait", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	server := storetest.Further(t, "redis.replicated")
	set := stores.NewSet()
	for _, name := range []string{"redis", "redis.replicated"} {
		if err := set.Add(name, server); err != nil {
			t.Fatal(err)
		}
	}
	plan.Arrivals, plan.Workers, plan.Seed, plan.Stores = "constant", 20, 3, set
	plan.Stream.Set("subjects", 1)
	plan.Stream.Set("popularity", "uniform")
	plan.Stream.Set("over-quota", 0)
	const rate = 1500
	report := longer(t, 600*time.Millisecond, func(d time.Duration) *Report {
		// The limit is used up after more than half of the run, and before its end.
		plan.Load, plan.Duration, plan.Policy.Limit = harness.OpenAt(rate), d, rate*d.Milliseconds()*5/9000
		plan.Outages = []harness.Outage{{Store: "redis", From: 0.5, To: 0.52, Failover: true, Behind: d / 4}}
		report, err := Measure(t.Context(), Config{Plan: plan, Rounds: 1, NoReference: true})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}, func(report *Report) bool {
		for _, r := range report.Runs {
			// The master took requests that its replica did not get, and more came after it.
			if r.Admitted == 0 || r.Strategy != "redis-wait" && (r.Admitted+r.Rejected-r.Degraded <= plan.Policy.Limit || decided(r, 0.3, 0.45) == 0) {
				return false
			}
		}
		return true
	})
	for i := range report.Runs {
		r := &report.Runs[i]
		if !r.Audit.Valid {
			t.Fatalf("%s: audit %+v", r.Strategy, r.Audit)
		}
		if waits := r.Strategy == "redis-wait"; waits != (len(r.Guarantee) == 1 && r.Guarantee[0].Verdict != results.Broken) {
			t.Errorf("%s is held to %+v", r.Strategy, r.Guarantee)
		}
		if o := r.Params.Outages; len(o) != 1 || o[0] != plan.Outages[0].String() {
			t.Errorf("%s: outages %q", r.Strategy, o)
		}
		switch waits := r.Strategy == "redis-wait"; {
		case waits && (r.Leak.Units != 0 || r.Admitted == 0):
			t.Errorf("%s admits %d and leaks %d: a replica had what it admitted", r.Strategy, r.Admitted, r.Leak.Units)
		case !waits && (r.Leak.Units == 0 || r.Leak.Units != r.Admitted-plan.Policy.Limit):
			t.Errorf("%s admits %d and leaks %d: the last writes of the master are lost", r.Strategy, r.Admitted, r.Leak.Units)
		}
		if r.Strategy == "lua-reserve" && (r.Drift == nil || r.Drift.Units >= 0) {
			t.Errorf("%s: drift %+v", r.Strategy, r.Drift)
		}
	}
	if len(report.Runs) != 3 {
		t.Errorf("%d runs", len(report.Runs))
	}
	plan.Stores = setOf(t, storetest.Redis(t))
	cfg := Config{Plan: plan}
	if err := cfg.Complete(); err == nil {
		t.Error("a server without a replica is to fail over")
	}
}
