package ttlcounter

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// TestDown: 550 of 2,750 requests come while Redis is away. They are rejected, or admitted
// beyond the limit of 1,090, which is declared and no violation. Without an outage the limit
// holds for either value, and down=open promises nothing.
func TestDown(t *testing.T) {
	away := trouble.MustParse("redis:away@0.3-0.5")
	for _, c := range []struct {
		strategy        string
		outages         trouble.List
		admitted, bound int64
	}{
		{"incr-expire", away, 1090, 0},
		{"incr-expire:down=open", nil, 1090, quota.Unbounded},
		{"incr-expire:down=open", away, 1090 + 550, quota.Unbounded},
		{"decr-expire", away, 1090, 0},
		{"decr-expire:down=open", away, 1090 + 550, quota.Unbounded},
	} {
		plan, err := harness.NewPlan(c.strategy, "1090 requests per fixed 1m", "steady")
		if err != nil {
			t.Fatal(err)
		}
		plan.Seed, plan.Load, plan.Arrivals, plan.Duration, plan.Trouble = 1, harness.OpenAt(50), "constant", 55*time.Second,
			c.outages
		plan.Stream.Set("subjects", 1)
		report, err := sim.Run(t.Context(), sim.Config{Plan: plan})
		if err != nil {
			t.Fatal(err)
		}
		r := report.Runs[0]
		if n := r.Admitted; n < c.admitted-5 || n > c.admitted+5 {
			t.Errorf("%s, %d outages: %d admitted, want about %d", c.strategy, len(c.outages), n, c.admitted)
		}
		for _, g := range append(r.Guarantee, r.Record...) {
			if g.Verdict == results.Broken || g.Source == "" && g.Property == string(quota.PropertyLeak) && g.Bound != c.bound {
				t.Errorf("%s, %d outages: %+v, want a bound of %d that is not broken", c.strategy, len(c.outages), g, c.bound)
			}
		}
	}
}

// TestDownInEveryOrder: what down=open admits is a leak in some order, and is declared. The
// clause of a strategy that fails closed would be broken by it.
func TestDownInEveryOrder(t *testing.T) {
	scripts, err := explore.ParseScripts("take;take")
	if err != nil {
		t.Fatal(err)
	}
	lying := incrExpireMeta
	lying.Guarantee = []quota.Clause{quota.Exactly(quota.FaultOutage)}
	for _, c := range []struct {
		meta     *strategies.Meta
		down     string
		property explore.Property
		found    bool
	}{
		{&incrExpireMeta, "closed", explore.Leak, false},
		{&incrExpireMeta, "open", explore.Leak, true},
		{&incrExpireMeta, "open", explore.Guarantee, false},
		{&lying, "open", explore.Guarantee, true},
	} {
		sel, err := c.meta.Select(quota.Options{"down": c.down})
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Run(t.Context(), sel, explore.Config{
			Scripts: scripts, Instances: 2, Limit: 1, Faults: []quota.Fault{quota.FaultOutage},
			Properties: []explore.Property{c.property},
		})
		if err != nil {
			t.Fatal(err)
		}
		if found := len(r.Findings) > 0; found != c.found || r.Capped != "" {
			t.Errorf("down=%s, %s: %+v, ended by %q; want a finding %t", c.down, c.property, r.Findings, r.Capped, c.found)
		}
	}
}
