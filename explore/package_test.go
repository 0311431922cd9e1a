package explore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A limiter whose count outlives its instances is refused, and nothing is found or claimed of it.
func TestStateOfThePackage(t *testing.T) {
	var mu sync.Mutex
	used := map[string]int64{}
	m := strategies.FromFunc("everywhere", []quota.Kind{quota.Standing},
		func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return strategies.AllowFunc(func(_ context.Context, key string) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				used[key]++
				return used[key] <= p.Limit, nil
			}), nil
		})
	m.Needs = nil
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := explore.Run(t.Context(), sel, explore.Config{Policy: policy(t, "10 requests at a time"), Limit: 2})
	if !errors.Is(err, explore.ErrNotDeterministic) || res != nil {
		t.Errorf("error %v next to %+v", err, res)
	}
}

// seen is what limiters have seen, by the limiter.
var seen sync.Map

// outside keeps what it has seen outside of itself. Its defect: whoever rejects a request begins the count anew.
type outside struct {
	rdb   redis.UniversalClient
	limit int64
}

func (o *outside) Allow(ctx context.Context, key string) (bool, error) {
	if n, ok := seen.Load(o); ok && n.(int64) > o.limit {
		return false, nil
	}
	n, err := o.rdb.Incr(ctx, key).Result()
	if err != nil {
		return false, err
	}
	seen.Store(o, n)
	if n > o.limit {
		return false, o.rdb.Set(ctx, key, 0, 0).Err()
	}
	return true, nil
}

// What a limiter keeps by the instance in a variable of its package is another thing in each run, and is not seen
// either. Nothing is claimed.
func TestStateByTheInstance(t *testing.T) {
	m := strategies.FromFunc("outside", []quota.Kind{quota.Standing},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return &outside{strategies.Redis(env), p.Limit}, nil
		})
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := explore.Run(t.Context(), sel,
		explore.Config{Policy: policy(t, "10 requests at a time"), Limit: 2, Clients: 3, Instances: 1,
			Properties: []explore.Property{explore.Leak}})
	if !errors.Is(err, explore.ErrNotDeterministic) || res != nil {
		t.Errorf("error %v next to %+v", err, res)
	}
}

// A random member of a sorted set, which most sliding logs have, is no reason not to search them.
func TestRandomMembers(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		m := strategies.FromFunc("log", []quota.Kind{quota.Rolling},
			func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				client := strategies.Redis(env)
				return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
					if n, err := client.ZCard(ctx, key).Result(); err != nil || n >= p.Limit {
						return false, err
					}
					return true, client.ZAdd(ctx, key, redis.Z{Member: rand.Int64()}).Err() //nolint:forbidigo // what is tested
				}), nil
			})
		m.Foreign = foreign
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := explore.Run(t.Context(), sel, explore.Config{Policy: policy(t, "10 requests per rolling 1m"), Limit: 1,
			Properties: []explore.Property{explore.Leak}})
		if err != nil || len(res.Findings) != 1 || len(res.Findings[0].Steps) != 4 {
			t.Fatalf("foreign %v: %+v, error %v, not a leak in 4 steps", foreign, res, err)
		}
		if r, err := explore.ReplayOf(t.Context(), sel, res.Findings[0].Token, explore.Target{}); err != nil || !r.Broken {
			t.Errorf("foreign %v: replayed %+v, error %v", foreign, r, err)
		}
	}
}
