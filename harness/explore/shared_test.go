package explore_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// stale keeps the count that its instance has seen last. The one that is right keeps the highest.
type stale struct {
	rdb   redis.UniversalClient
	limit int64
	right bool
	seen  atomic.Int64
}

func (s *stale) Allow(ctx context.Context, key string) (bool, error) {
	if s.seen.Load() > s.limit {
		return false, nil
	}
	n, err := s.rdb.Incr(ctx, key).Result()
	if err != nil {
		return false, err
	}
	if s.seen.Store(n); n > s.limit && !s.right {
		return false, s.rdb.Set(ctx, key, 0, 0).Err()
	}
	return n <= s.limit, nil
}

// Callers of one instance go on in another order than that in which their commands had their effects.
func TestRepliesToCallersOfOneInstance(t *testing.T) {
	for _, abroad := range []bool{false, true} {
		for _, right := range []bool{false, true} {
			m := strategies.FromFunc("stale", []quota.Kind{quota.Standing}, func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return &stale{rdb: strategies.Redis(env), limit: p.Limit, right: right}, nil
			})
			m.Foreign = abroad
			sel, err := m.Select(nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := explore.Run(t.Context(), sel, explore.Config{Clients: 3, Instances: 1, Limit: 2, Properties: []explore.Property{explore.Leak}})
			if err != nil {
				t.Fatal(err)
			}
			if right {
				if len(r.Findings) > 0 || r.Claim == "" || r.Capped != "" {
					t.Errorf("foreign %t, right: %+v", abroad, r)
				}
				continue
			}
			f := found(t, r, explore.Leak)
			if len(f.Steps) != 12 || !r.Split {
				t.Errorf("foreign %t: %d steps, split %t", abroad, len(f.Steps), r.Split)
			}
			if again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{}); err != nil || !again.Broken {
				t.Errorf("foreign %t, again: %+v, %v", abroad, again, err)
			}
		}
	}
}
