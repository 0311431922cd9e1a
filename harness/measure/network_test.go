package measure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

// overNetwork measures strategies once over a network, each with 4 workers in 2 instances, in runs that become longer
// until met holds for each.
func overNetwork(t *testing.T, names string, set func(c *Config), met func(results.Run) bool,
	texts ...string) map[string]results.Run {
	t.Helper()
	plan, err := harness.NewPlan(names, "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Workers, plan.Instances, plan.Seed, plan.Trouble = 4, 2, 3, trouble.MustParse(texts...)
	plan.Stream.Set("subjects", 4)
	plan.Policy.Limit, plan.Load = 1_000_000, harness.Closed()
	return longer(t, 200*time.Millisecond, func(d time.Duration) map[string]results.Run {
		plan.Duration = d
		cfg := Config{Plan: plan, Rounds: 1, NoReference: true}
		set(&cfg)
		if cfg.Stores == nil {
			cfg.Stores = setOf(t, storetest.Redis(t))
		}
		report, err := Measure(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]results.Run{}
		for _, r := range report.Runs {
			out[r.Strategy] = r
		}
		return out
	}, func(runs map[string]results.Run) bool {
		for _, r := range runs {
			if !met(r) {
				return false
			}
		}
		return true
	})
}

// TestLostReplies: with a client that repeats commands, each lost reply of an INCR is one attempt too many, and none of
// a reservation that is known by its name. Counters are there from the start, so that nothing but INCR is sent.
func TestLostReplies(t *testing.T) {
	const retries = 3
	runs := overNetwork(t, "incr-expire,incr-expire-atomic,lua-reserve-hardened", func(c *Config) {
		c.ClientRetries = retries
		c.Stream.Set("fill", 0.001)
	}, func(r results.Run) bool { return r.LostReplies > 0 }, "redis:reply-loss=0.05")
	for name, each := range map[string]int64{"incr-expire": 1, "incr-expire-atomic": 1, "lua-reserve-hardened": 0} {
		r := runs[name]
		if r.LostReplies < 1 || r.LostRequests != 0 || r.Errors != 0 || !r.Audit.Valid || !r.Audit.Has("network-lost") {
			t.Fatalf("%s: %d requests and %d replies lost, %d errors, %+v", name, r.LostRequests, r.LostReplies, r.Errors,
				r.Audit)
		}
		if r.LostReplies < r.Degraded*(1+retries) {
			t.Errorf("%s: %d requests without an answer, and only %d lost replies: the client repeats too little", name,
				r.Degraded, r.LostReplies)
		}
		// If each try of a request lost its reply, nobody knows that it was admitted, and one attempt is none too many.
		if got := r.Drift.Tiers[0].Total; got != each*(r.LostReplies-r.Degraded) {
			t.Errorf("%s: the counters are %d too high for %d lost replies and %d requests without any", name, got,
				r.LostReplies, r.Degraded)
		}
	}
}

// TestLostRequests: what did not reach the store has no effect, and its caller knows no answer.
func TestLostRequests(t *testing.T) {
	met := func(r results.Run) bool { return r.LostRequests > 0 }
	r := overNetwork(t, "incr-expire", func(*Config) {}, met, "redis:loss=0.05")["incr-expire"]
	if r.LostRequests < 1 || r.LostReplies != 0 || r.Degraded != r.LostRequests || r.Drift.Units != 0 {
		t.Errorf("%d requests and %d replies lost, %d degraded, %+v", r.LostRequests, r.LostReplies, r.Degraded, r.Drift)
	}
	if !r.Audit.Valid || len(r.Outages) != 1 || r.Outages[0].Rejected != r.Degraded {
		t.Errorf("%+v, outages %+v", r.Audit, r.Outages)
	}
}

// TestNetworkOfPostgres: a lost reply of a statement is an error of its request, whose unit may be charged.
func TestNetworkOfPostgres(t *testing.T) {
	met := func(r results.Run) bool { return r.LostReplies > 0 }
	r := overNetwork(t, "pg-conditional", func(c *Config) {
		c.Stores = setOf(t, storetest.Postgres(t))
	}, met, "postgres:latency=2ms,reply-loss=0.1")["pg-conditional"]
	if r.LostReplies < 1 || r.Errors != r.LostReplies || r.Drift.Units != 0 || !r.Audit.Valid ||
		r.Service.P50 < int64(2*time.Millisecond) {
		t.Errorf("%d replies lost, %d errors, %+v, %+v, %+v", r.LostReplies, r.Errors, r.Drift, r.Audit, r.Service)
	}
}

// TestNetworkLatency: a round trip is a decision's, so each takes at least as long.
func TestNetworkLatency(t *testing.T) {
	met := func(results.Run) bool { return true }
	r := overNetwork(t, "incr-expire-atomic", func(*Config) {}, met, "redis:latency=7ms")["incr-expire-atomic"]
	if r.Service.P50 < int64(7*time.Millisecond) || r.Issued > 4*200/7+4 || r.Issued == 0 {
		t.Errorf("p50 %v, %d requests", time.Duration(r.Service.P50), r.Issued)
	}
	if len(r.Outages) > 0 || r.Errors > 0 || !r.Audit.Valid ||
		!slices.Equal(r.Params.Trouble.Strings(), []string{"redis:latency=7ms"}) {
		t.Errorf("%+v, %d errors, %+v, %v", r.Outages, r.Errors, r.Audit, r.Params.Trouble)
	}
	for _, c := range r.Guarantee {
		if c.Verdict == results.Undecided || c.Verdict == results.Broken {
			t.Errorf("latency is no fault: %+v", c)
		}
	}
}

// TestPartition: one instance of two is cut off for the second half. Its requests wait until the end, and the other one
// goes on.
func TestPartition(t *testing.T) {
	var length time.Duration
	met := func(r results.Run) bool { // a request began soon after the cut, and most were not held up by it
		return decided(r, 0.6, 1) > 0 && r.Service.Max >= int64(length)*19/40 && r.Service.P50 <= int64(length)/4
	}
	r := overNetwork(t, "incr-expire-atomic", func(c *Config) {
		length = c.Duration
	}, met, "redis/1:cut@0.5-1")["incr-expire-atomic"]
	if !met(r) || len(r.Outages) != 1 {
		t.Errorf("%d decided in %v, outages %+v, %+v", decided(r, 0.6, 1), length, r.Outages, r.Service)
	}
	if !r.Audit.Valid || r.Drift.Units != 0 {
		t.Errorf("%+v, %+v", r.Audit, r.Drift)
	}
}

func TestNetworkBounds(t *testing.T) {
	plan, err := harness.NewPlan("incr-expire", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Stores = setOf(t, storetest.Redis(t))
	plan.Instances = 2
	for text, part := range map[string]string{
		"redis/2:cut": "instances are 0 to 1", "redis.7:cut": "no store redis.7",
	} {
		plan.Trouble = trouble.MustParse(text)
		if err := (&Config{Plan: plan}).Complete(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
