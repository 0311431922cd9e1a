package measure

import (
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/stores/redis"
)

// broken measures a strategy while a fault befalls its store from 0.3 to 0.6 of the run.
func broken(t *testing.T, name, driver, fault string, s stores.Store) results.Run {
	t.Helper()
	plan, err := harness.NewPlan(name, "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Workers, plan.Instances, plan.Seed, plan.Stores = 4, 2, 3, setOf(t, s)
	plan.Stream.Set("subjects", 24)
	plan.Policy.Limit, plan.Load, plan.Duration = 1_000_000, harness.OpenAt(300), time.Second
	after := 0.8
	if fault == "node-stopped" { // callers that wait for it are not all
		plan.Workers = 100
	}
	if fault == "restarted" { // clients look for a server once a second
		plan.Duration = 5 * time.Second
		after = 0.95
	}
	plan.Trouble = trouble.MustParse(driver + ":" + fault + "@0.3-0.6")
	met := func(results.Run) bool { return true } // or the fault came too late to be noticed
	switch fault {
	case "stopped", "locked", "node-stopped":
		met = func(r results.Run) bool { return r.Service.Max >= int64(250*time.Millisecond) }
	case "restarted", "full", "commits-fail", "connections-taken":
		met = func(r results.Run) bool { return r.Degraded+r.Errors > 0 }
	}
	back := func(r results.Run) (n int64) { // what is admitted again: the limit is out of reach
		if r.OverTime.Sound() {
			for _, admitted := range r.OverTime.Admitted[int(after*float64(len(r.OverTime.Admitted))):] {
				n += admitted
			}
		}
		return n
	}
	r := longer(t, plan.Duration, func(d time.Duration) results.Run {
		plan.Duration = d
		report, err := Measure(t.Context(), Config{Plan: plan, Rounds: 1, NoReference: true})
		if err != nil {
			t.Fatalf("%s: %v", fault, err)
		}
		return report.Runs[0]
	}, func(r results.Run) bool { return met(r) && decided(r, 0, 0.3) > 0 && back(r) > 0 })
	if !r.Audit.Valid || decided(r, 0, 0.3) == 0 || back(r) == 0 || len(r.Outages) != 1 {
		t.Errorf("%s: %d decided before, %d admitted after, outages %+v, %+v", fault, decided(r, 0, 0.3), back(r), r.Outages,
			r.Audit)
	}
	if r.Cost.Probe != nil { // of a store that is not what it was
		t.Errorf("%s: the cost probe is %+v", fault, r.Cost.Probe)
	}
	for _, c := range r.Guarantee {
		if c.Verdict == results.Broken {
			t.Errorf("%s: %+v", fault, c)
		}
	}
	return r
}

// TestBrokenRedis: each fault does to a right limiter what it says, and accuses it of nothing.
func TestBrokenRedis(t *testing.T) {
	testenv.Long(t)
	storetest.Redis(t) // or skip
	s, err := redis.Open(t.Context(), "process:durable", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	const name = "incr-expire-atomic"
	if r := broken(t, name, "redis", "stopped", s); r.Service.Max < int64(250*time.Millisecond) ||
		r.Degraded+r.Errors > 0 || r.Drift.Units != 0 {
		t.Errorf("stopped: %d without it, drift %+v, %+v", r.Degraded+r.Errors, r.Drift, r.Service)
	}
	before := s.PID()
	if r := broken(t, name, "redis", "restarted", s); r.Degraded == 0 || s.PID() == before || r.Drift.Tiers[0].Total > 8 ||
		r.Drift.Units < 0 {
		t.Errorf("restarted: %d without it, drift %+v", r.Degraded, r.Drift)
	}
	if r := broken(t, name, "redis", "flushed", s); r.Degraded+r.Errors > 0 || r.Drift.Units >= 0 {
		t.Errorf("flushed: %d without it, drift %+v", r.Degraded+r.Errors, r.Drift)
	}
	if r := broken(t, name, "redis", "scripts-lost", s); r.Degraded+r.Errors > 0 || r.Drift.Units != 0 ||
		r.Guarantee[0].Verdict == results.Undecided {
		t.Errorf("scripts-lost: %d without it, drift %+v, %+v", r.Degraded+r.Errors, r.Drift, r.Guarantee)
	}
	if r := broken(t, name, "redis", "full", s); r.Degraded+r.Errors == 0 || r.Drift.Units != 0 {
		t.Errorf("full: %d without it, drift %+v", r.Degraded+r.Errors, r.Drift)
	}
	r := broken(t, name, "redis", "evicting", s)
	if lost, _ := r.Drift.Lost(); lost == 0 || r.Degraded+r.Errors > 0 || !r.Audit.Has("store-evicted") {
		t.Errorf("evicting: %v units lost, %d without it, audit %+v", lost, r.Degraded+r.Errors, r.Audit)
	}
	if left := s.Admin().Keys(t.Context(), "filling:*").Val(); len(left) > 0 {
		t.Errorf("evicting leaves %d keys", len(left))
	}
}

// TestBrokenCluster has one node of a cluster stand still: some requests wait, and those of the other nodes do not.
func TestBrokenCluster(t *testing.T) {
	testenv.Long(t)
	storetest.Redis(t) // or skip
	s, err := redis.Open(t.Context(), "process:cluster=3", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	r := broken(t, "incr-expire-atomic", "redis", "node-stopped", s)
	if r.Service.Max < int64(200*time.Millisecond) || decided(r, 0.35, 0.55) == 0 || r.Drift.Units != 0 {
		t.Errorf("node-stopped: %d decided meanwhile, drift %+v, %+v", decided(r, 0.35, 0.55), r.Drift, r.Service)
	}
}

// TestBrokenPostgres is TestBrokenRedis of the other one.
func TestBrokenPostgres(t *testing.T) {
	testenv.Long(t)
	storetest.Postgres(t) // or skip
	s, err := postgres.Open(t.Context(), "process:connections=40",
		stores.Options{Settings: map[string]string{"fsync": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	const name = "pg-conditional"
	for _, waits := range []string{"stopped", "locked"} {
		if r := broken(t, name, "postgres", waits, s); r.Service.Max < int64(250*time.Millisecond) ||
			r.Degraded+r.Errors > 0 || r.Drift.Units != 0 {
			t.Errorf("%s: %d without it, drift %+v, %+v", waits, r.Degraded+r.Errors, r.Drift, r.Service)
		}
	}
	for _, fails := range []string{"restarted", "commits-fail", "connections-taken"} {
		if r := broken(t, name, "postgres", fails, s); r.Degraded+r.Errors == 0 || r.Drift.Units != 0 {
			t.Errorf("%s: %d without it, drift %+v", fails, r.Degraded+r.Errors, r.Drift)
		}
	}
}

// TestNotBreakable: what cannot be done is refused before anything is measured.
func TestNotBreakable(t *testing.T) {
	plan, err := harness.NewPlan("incr-expire", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Stores = setOf(t, storetest.Redis(t))
	for fault, part := range map[string]string{
		"restarted": "use process:durable", "node-stopped": "no fault node-stopped of redis",
		"locked": "no fault locked of redis", "connections-taken": "no fault connections-taken of redis",
	} {
		plan.Trouble = trouble.MustParse("redis:" + fault + "@0.3-0.6")
		plan.Duration = time.Second
		if err := (&Config{Plan: plan}).Complete(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", fault, err)
		}
	}
}
