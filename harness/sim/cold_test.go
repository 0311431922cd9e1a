package sim_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestColdConnections: each command waits for two more round trips, and is charged
// for nothing else.
func TestColdConnections(t *testing.T) {
	testenv.Sequential(t)
	medians := func(cold bool) map[string]time.Duration {
		cfg := config(t, "incr-expire,check-then-set", "agent-api", "steady")
		cfg.Load = harness.OpenAt(100)
		cfg.Duration = 20 * time.Second
		cfg.Cold = cold
		cfg.Every = -1
		const leg = 100 * time.Microsecond
		cfg.RedisNet = &sim.Network{Servers: 1, Request: sim.Table{{0, leg}, {1e6, leg}},
			Reply: sim.Table{{0, leg}, {1e6, leg}}}
		out := map[string]time.Duration{}
		report := run(t, cfg)
		for i := range report.Runs {
			r := &report.Runs[i]
			valid(t, r)
			if r.Params.Cold != cold {
				t.Errorf("%s: recorded as cold: %v", r.Strategy, r.Params.Cold)
			}
			out[r.Strategy] = time.Duration(r.Response.P50)
		}
		return out
	}
	warm := medians(false)
	cold := medians(true)
	for name, commands := range map[string]time.Duration{"incr-expire": 1, "check-then-set": 2} {
		extra := (cold[name] - warm[name]).Round(50 * time.Microsecond)
		if want := commands * 2 * 200 * time.Microsecond; extra != want {
			t.Errorf("%s takes %v, and %v with cold connections: want %v more", name, warm[name], cold[name], want)
		}
	}
}
