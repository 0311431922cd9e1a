package explore_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// lastComer counts in Redis and remembers in process who came last. Four units
// are admitted only as the third request, and right after two.
type lastComer struct {
	redis redis.UniversalClient
	last  int64
}

func (s *lastComer) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	n, err := s.redis.Incr(ctx, "n").Result()
	if err != nil {
		return quota.Decision{}, err
	}
	d := quota.Decision{Admitted: n == 3 && req.Units == 4 && s.last == 2}
	s.last = req.Units
	return d, nil
}

func (s *lastComer) Close(context.Context) error { return nil }

// Two orders can leave the same store and the same replies behind, and differ in
// memory alone.
func TestMemoryIsPartOfTheState(t *testing.T) {
	m := *testkit.Strategy(t, "unlimited").Meta
	m.Name = "last-comer"
	m.Guarantee = nil
	m.Reset = strategies.ResetsMissing
	m.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &lastComer{redis: strategies.Redis(env)}, nil
	}
	scripts, err := explore.ParseScripts("take=2;take=3;take=4")
	if err != nil {
		t.Fatal(err)
	}
	r, err := explore.Run(t.Context(), strategies.Selection{Meta: &m}, explore.Config{
		Clients: 3, Instances: 1, Limit: 1, Scripts: scripts, Properties: []explore.Property{explore.Leak, explore.Stuck},
		Bounds: explore.Bounds{MaxStates: 10_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	found(t, r, explore.Leak)
	if r.Capped != "" {
		t.Errorf("ended by %s", r.Capped)
	}
}
