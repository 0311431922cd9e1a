package sim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// waiting admits everything, after a while.
type waiting struct {
	env   strategies.Env
	takes time.Duration
	lists bool // keeps a list, which the table of keys does not have
}

func (w waiting) Allow(ctx context.Context, key string) (bool, error) {
	if w.lists {
		return true, strategies.Redis(w.env).RPush(ctx, key, "x").Err()
	}
	return true, w.env.Clock.Sleep(ctx, w.takes)
}

// Each planted trouble of a simulation is named, and no other.
func TestAuditOfASimulation(t *testing.T) {
	for name, c := range map[string]struct {
		waiting
		workers int
		code    string
	}{
		"callers enough": {waiting{takes: time.Second}, 1_000, ""},
		"one caller":     {waiting{takes: time.Second}, 1, "backlog"},
		"no answer":      {waiting{takes: 100 * 24 * time.Hour}, 1_000, "unfinished"},
		"lists":          {waiting{lists: true}, 1_000, "miniredis"},
	} {
		m := strategies.FromFunc("waiting", []quota.Kind{quota.CalendarHour},
			func(_ context.Context, env strategies.Env, _ *quota.Policy) (strategies.Allower, error) {
				return waiting{env, c.takes, c.lists}, nil
			})
		if !c.lists {
			m.Needs = nil
		}
		cfg := config(t, "unlimited", "agent-api", "steady")
		cfg.Strategies = []strategies.Selection{{Meta: &m}}
		cfg.Workers = c.workers
		cfg.Load = harness.OpenAt(10)
		cfg.Duration = 10 * time.Second
		cfg.Stream.Set("over-quota", 0)
		report, err := sim.Run(t.Context(), cfg)
		if (err != nil) != (c.code == "unfinished") {
			t.Fatalf("%s: %v", name, err)
		}
		r := &report.Runs[0]
		for _, code := range []string{"backlog", "unfinished", "miniredis"} {
			found := slices.ContainsFunc(r.Audit.Reasons, func(x results.Reason) bool { return x.Code == code })
			if found != (code == c.code) {
				t.Errorf("%s: %s is found: %t; %+v", name, code, found, r.Audit.Reasons)
			}
		}
	}
}
