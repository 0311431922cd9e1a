package tiered_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// TestInstancesWriteBackTogether: two instances that charge the same agents in
// opposite orders must not wait for each other's rows.
func TestInstancesWriteBackTogether(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		if s.pool == nil {
			t.Skip("the model has no row locks")
		}
		const agents, rounds = 200, 5
		ctx := context.WithValue(t.Context(), untraced{}, true)
		p := policy(t, "agent-api", 1_000)
		a := s.open(t, "redis-hash")
		b := s.open(t, "redis-hash")
		grants := make([]strategies.Grant, agents)
		for i := range grants {
			grants[i] = strategies.Grant{Subject: quota.Subject(fmt.Sprintf("agent-%03d", i)), Limit: 1_000}
		}
		a.provision(p, grants...)
		for range rounds {
			for i := range grants {
				for in, g := range map[*opened]strategies.Grant{a: grants[i], b: grants[agents-1-i]} {
					if _, err := in.Take(ctx, quota.Request{Subject: g.Subject, Policy: p, Units: 1}); err != nil {
						t.Fatal(err)
					}
				}
			}
			var wg sync.WaitGroup
			for _, in := range []*opened{a, b} {
				wg.Go(func() {
					if _, err := in.Strategy.(strategies.Jobber).Jobs()[0].Run(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
	})
}

// TestProvisionManyAgents sets up as many as the steady workload has.
func TestProvisionManyAgents(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "three-tier")
		p := policy(t, "agent-api", 10)
		grants := make([]strategies.Grant, 10_000)
		for i := range grants {
			grants[i] = strategies.Grant{Subject: quota.Subject(fmt.Sprintf("agent-%d", i)), Limit: 10, Used: int64(i % 11)}
		}
		start := clock.Nano()
		in.provision(p, grants...)
		t.Logf("10,000 agents in %s", time.Duration(clock.Nano()-start))
		in.wantUsed(p, -1, 7) // agent-7
		if n, err := s.redis.SCard(t.Context(), s.prefix+"over_quota").Result(); err != nil || n != 909 {
			t.Errorf("%d agents over quota, %v; want 909", n, err)
		}
	})
}
