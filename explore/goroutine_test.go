package explore_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// aside counts, and sends every so manieth key's time to live from a goroutine of its own.
func aside(t *testing.T, every int64, waits bool) strategies.Selection {
	t.Helper()
	var calls atomic.Int64
	m := strategies.FromFunc("aside", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			rdb := strategies.Redis(env)
			return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
				n, err := rdb.Incr(ctx, key).Result()
				if calls.Add(1)%every == 0 {
					done := make(chan struct{})
					go func() {
						defer close(done)
						_ = rdb.Expire(ctx, key, time.Hour).Err()
					}()
					if waits {
						<-done
					}
				}
				return n <= p.Limit, err
			}), nil
		})
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	return sel
}

// Goroutines that a limiter starts in a call are named, also on a path that few calls take.
func TestRareGoroutine(t *testing.T) {
	testenv.Sequential(t)
	const code = "own-goroutine"
	steady, err := workloads.Lookup("steady")
	if err != nil {
		t.Fatal(err)
	}
	for _, every := range []int64{1, 200} {
		for _, waits := range testenv.Pick([]bool{every == 1}, []bool{true, false}) {
			res, err := explore.Run(t.Context(), aside(t, every, waits), explore.Config{
				Policy: policy(t, "10 requests per fixed 10s"), Clients: 3, Limit: 2, Bounds: explore.Bounds{Preemptions: -1},
				Faults: []quota.Fault{quota.FaultCrash}, Properties: []explore.Property{explore.Leak},
			})
			if err == nil || res == nil || res.Claim != "" || !slices.ContainsFunc(res.Withheld, func(w results.Withheld) bool {
				return w.Code == code
			}) {
				t.Errorf("explore, every %d, waits %t: %v beside %+v", every, waits, err, res)
			}
			plan := harness.Plan{
				Policy:     policy(t, "10 requests per fixed 10s"),
				Traffic:    harness.Traffic{Workload: steady, Load: harness.OpenAt(100), Duration: 10 * time.Second},
				Strategies: []strategies.Selection{aside(t, every, waits)}, Instances: 2, Seed: 1,
				Callers: harness.Callers{DecisionTimeout: 2 * time.Second},
			}
			r, err := sim.Run(t.Context(), sim.Config{Plan: plan})
			if err == nil || r == nil || !slices.ContainsFunc(r.Runs[0].Audit.Reasons, func(x results.Reason) bool {
				return x.Code == code
			}) {
				t.Errorf("sim, every %d, waits %t: %v beside %+v", every, waits, err, r)
			}
		}
	}
}
