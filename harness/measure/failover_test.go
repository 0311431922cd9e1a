package measure

import (
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// TestFailover kills a real master in mid-run, and its replica, which was late, takes its place. Units on their way are
// admitted once more by strategies that do not wait for the replica, and counters say so.
func TestFailover(t *testing.T) {
	testenv.Long(t)
	failover(t, storetest.Further(t, "redis.replicated"), "incr-expire,lua-reserve,redis-wait", masterDies{
		shortest: 600 * time.Millisecond, at: 0.5, behind: 1. / 6, rate: 1500, limit: 5. / 9, workers: 100,
	})
	plan, err := harness.NewPlan("incr-expire", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Duration = time.Minute
	plan.Stores = setOf(t, storetest.Redis(t))
	plan.Trouble = trouble.MustParse("redis:failover@0.5-0.52")
	cfg := Config{Plan: plan}
	if err := cfg.Complete(); err == nil {
		t.Error("a server without a replica is to fail over")
	}
}

// TestSentinelsFailOver is TestFailover with sentinels that choose the new master.
func TestSentinelsFailOver(t *testing.T) {
	testenv.Long(t)
	storetest.Redis(t) // or skip
	server, err := redis.Open(t.Context(), "process:sentinel=3", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	failover(t, server, "lease:block=20,incr-expire-atomic,redis-wait", masterDies{
		shortest: 8 * time.Second, at: 0.25, behind: 1. / 8, rate: 500, limit: 3. / 8, workers: 20,
	})
}

// masterDies is how a master fails: from when on, with a replica so far behind, as shares of the duration. The limit is
// a share of all requests that is used up after that, and before the end.
type masterDies struct {
	shortest          time.Duration
	rate              int64
	at, behind, limit float64
	workers           int
}

func failover(t *testing.T, server stores.Store, names string, f masterDies) {
	plan, err := harness.NewPlan(names, "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	set := stores.NewSet()
	for _, name := range []string{"redis", "redis.replicated"} {
		if err := set.Add(name, server); err != nil {
			t.Fatal(err)
		}
	}
	plan.Arrivals = "constant"
	plan.Workers = f.workers
	plan.Seed = 3
	plan.Stores = set
	plan.Stream.Set("subjects", 1)
	plan.Stream.Set("popularity", "uniform")
	plan.Stream.Set("over-quota", 0)
	report := longer(t, f.shortest, func(d time.Duration) *Report {
		plan.Load = harness.OpenAt(float64(f.rate))
		plan.Duration = d
		plan.Policy.Limit = int64(f.limit * float64(f.rate) * d.Seconds())
		plan.Trouble = trouble.List{{
			Where: trouble.Where{Name: "redis", Instance: trouble.All}, When: trouble.When{From: f.at, To: f.at + 0.02},
			What: trouble.What{Word: trouble.Failover, For: time.Duration(f.behind * float64(d))},
		}}
		report, err := Measure(t.Context(), Config{Plan: plan, Rounds: 1, NoReference: true})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}, func(report *Report) bool {
		for _, r := range report.Runs {
			// The master took requests that its replica did not get, and more came after it.
			lost, _ := r.Drift.Lost()
			if r.Admitted == 0 || r.Strategy != "redis-wait" &&
				(lost == 0 || r.Admitted+r.Rejected-r.Degraded <= plan.Policy.Limit ||
					decided(r, f.at-f.behind+0.03, f.at-0.03) == 0) {
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
		held := slices.ContainsFunc(r.Guarantee, func(g results.Clause) bool {
			return g.Property == string(quota.PropertyLeak) && g.Verdict != results.Broken
		})
		if held != (r.Strategy == "redis-wait") {
			t.Errorf("%s is held to %+v", r.Strategy, r.Guarantee)
		}
		if !slices.Equal(r.Params.Trouble, plan.Trouble) {
			t.Errorf("%s: the record says %q", r.Strategy, r.Params.Trouble)
		}
		lost, _ := r.Drift.Lost()
		switch waits := r.Strategy == "redis-wait"; {
		case waits && (r.Leak.Units != 0 || r.Admitted == 0 || lost != 0):
			t.Errorf("%s admits %d, loses %v and leaks %d: a replica had what it admitted", r.Strategy, r.Admitted, lost,
				r.Leak.Units)
		case !waits && (r.Leak.Units == 0 || r.Leak.Units != r.Admitted-plan.Policy.Limit || lost < float64(r.Leak.Units)):
			t.Errorf("%s admits %d, loses %v and leaks %d: the last writes of the master are lost", r.Strategy, r.Admitted, lost,
				r.Leak.Units)
		}
		if r.Strategy == "lua-reserve" && (r.Drift == nil || r.Drift.Units >= 0) {
			t.Errorf("%s: drift %+v", r.Strategy, r.Drift)
		}
	}
	if len(report.Runs) != 3 {
		t.Errorf("%d runs", len(report.Runs))
	}
}
