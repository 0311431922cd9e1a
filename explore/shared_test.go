package explore_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// stale keeps the count that its instance has seen last. The one that is right keeps the highest.
type stale struct {
	rdb   redis.UniversalClient
	limit int64
	right bool
	seen  *atomic.Int64
}

func (s *stale) Allow(ctx context.Context, key string) (bool, error) {
	if s.seen.Load() > s.limit {
		return false, nil
	}
	n, err := s.rdb.Incr(ctx, key).Result()
	if err != nil {
		return false, err
	}
	s.seen.Store(n)
	if n > s.limit && !s.right {
		return false, s.rdb.Set(ctx, key, 0, 0).Err()
	}
	return n <= s.limit, nil
}

// Callers of one instance, or of instances that share memory, go on in another order than that in which their commands
// had their effects.
func TestRepliesWhereMemoryIsShared(t *testing.T) {
	testenv.Sequential(t)
	for _, abroad := range []bool{false, true} {
		for _, right := range []bool{false, true} {
			for _, shares := range []string{"instance", "Env.Shared", "pointer"} {
				var one *atomic.Int64
				m := strategies.FromFunc("stale", []quota.Kind{quota.Standing},
					func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
						s := &stale{rdb: strategies.Redis(env), limit: p.Limit, right: right, seen: new(atomic.Int64)}
						switch shares {
						case "Env.Shared":
							s.seen = strategies.SharedValue(env.Shared, "seen", func() *atomic.Int64 { return s.seen })
						case "pointer":
							s.seen = one
						}
						return s, nil
					})
				opened := m.Open
				m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
					if env.Instance == 0 {
						one = new(atomic.Int64)
					}
					return opened(ctx, env)
				}
				m.Foreign = abroad
				cfg := explore.Config{Clients: 2, Limit: 1, Properties: []explore.Property{explore.Leak},
					Resources: explore.Resources{Workers: 1}}
				if shares == "instance" {
					cfg.Instances = 1
				}
				repliesMatter(t, m, cfg, right, 9)
			}
		}
	}
}

// repliesMatter explores a limiter that leaks, unless it is right, if a reply comes late.
func repliesMatter(t *testing.T, m strategies.Meta, cfg explore.Config, right bool, steps int) {
	t.Helper()
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := explore.Run(t.Context(), sel, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if right {
		if len(r.Findings) > 0 || r.Claim == "" || r.Capped != "" {
			t.Errorf("foreign %t, right: %+v", m.Foreign, r)
		}
		return
	}
	f := found(t, r, explore.Leak)
	if len(f.Steps) != steps || !r.Split {
		t.Errorf("foreign %t: %d steps, split %t", m.Foreign, len(f.Steps), r.Split)
	}
	if again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{}); err != nil || !again.Broken {
		t.Errorf("foreign %t, again: %+v, %v", m.Foreign, again, err)
	}
}

// refreshed trusts the count that it has seen last, of its own keys, which a job reads again. The one that is right
// keeps the highest.
type refreshed struct {
	rdb   redis.UniversalClient
	key   string
	right bool
	seen  int64
}

func (s *refreshed) Close(context.Context) error { return nil }

func (s *refreshed) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	if s.seen >= r.Policy.Limit {
		return quota.Decision{Tier: quota.TierRedis}, nil
	}
	n, err := s.rdb.Incr(ctx, s.key).Result()
	s.sees(n)
	return quota.Decision{Admitted: err == nil, Tier: quota.TierRedis}, err
}

func (s *refreshed) sees(n int64) {
	if !s.right || n > s.seen {
		s.seen = n
	}
}

func (s *refreshed) Jobs() []strategies.Job {
	return []strategies.Job{{Name: "refresh", Every: time.Minute, Run: func(ctx context.Context) (bool, error) {
		n, err := s.rdb.Get(ctx, s.key).Int64()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		s.sees(n)
		return false, err
	}}}
}

// A job of an instance goes on in another order, too, if one caller asks that instance.
func TestRepliesToAJobAndItsCaller(t *testing.T) {
	for _, right := range []bool{false, true} {
		m := strategies.FromFunc("refreshed", []quota.Kind{quota.Standing}, nil)
		m.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return &refreshed{rdb: strategies.Redis(env), key: fmt.Sprint("used", env.Instance), right: right}, nil
		}
		repliesMatter(t, m, explore.Config{Clients: 1, Limit: 1, Properties: []explore.Property{explore.Leak}}, right, 7)
	}
}
