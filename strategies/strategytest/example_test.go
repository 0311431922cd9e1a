package strategytest_test

import (
	"context"
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/strategytest"
)

// testConformance is a team's test of its own limiter, which is one INCR for each
// request. Keys of fixed windows hold the window's number, so no key has to expire
// for the limit to hold.
func testConformance(t *testing.T) {
	meta := strategies.FromFunc("team-incr", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
				n, err := strategies.Redis(env).Incr(ctx, key).Result()
				return n <= p.Limit, err
			}), nil
		})
	meta.Reset, meta.Guarantee = strategies.ResetsMissing, []quota.Clause{quota.Exactly()}
	strategytest.Run(t, &meta) // on a Redis in this process
}

// The suite needs the *testing.T of a test: in a program of your own testConformance is
// TestConformance.
func ExampleRun() {
	tests := []testing.InternalTest{{Name: "TestConformance", F: testConformance}}
	_ = tests
}

// TestExampleRun runs what the example shows.
func TestExampleRun(t *testing.T) { testConformance(t) }
