package measure

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestFailover kills a real master in mid-run. The units of its last 150 ms are admitted once more by strategies that do not wait for the replica, and counters
// say so.
func TestFailover(t *testing.T) {
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
	plan.Policy.Limit, plan.Rate, plan.Arrivals, plan.Duration = 500, 1500, "constant", 600*time.Millisecond
	plan.Workers, plan.Seed, plan.Stores = 20, 3, set
	plan.Stream.Set("subjects", 1)
	plan.Stream.Set("popularity", "uniform")
	plan.Stream.Set("over-quota", 0)
	plan.Outages = []harness.Outage{{Store: "redis", From: 0.5, To: 0.52, Failover: true, Behind: 150 * time.Millisecond}}
	report, err := Measure(t.Context(), Config{Plan: plan, Rounds: 1, NoReference: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range report.Runs {
		r := &report.Runs[i]
		if !r.Audit.Valid {
			t.Fatalf("%s: audit %+v", r.Strategy, r.Audit)
		}
		if waits := r.Strategy == "redis-wait"; waits != (len(r.Guarantee) == 1 && r.Guarantee[0].Verdict != results.Violated) {
			t.Errorf("%s is held to %+v", r.Strategy, r.Guarantee)
		}
		if o := r.Params.Outages; len(o) != 1 || o[0] != "redis:0.5-0.52:failover=150ms" {
			t.Errorf("%s: outages %q", r.Strategy, o)
		}
		switch waits := r.Strategy == "redis-wait"; {
		case waits && (r.Leak.Units != 0 || r.Admitted == 0):
			t.Errorf("%s admits %d and leaks %d: a replica had what it admitted", r.Strategy, r.Admitted, r.Leak.Units)
		case !waits && (r.Leak.Units == 0 || r.Leak.Units != r.Admitted-500):
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
