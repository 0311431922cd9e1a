package explore_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// partial does not count the first request if that comes to it.
type partial struct {
	rdb   redis.UniversalClient
	limit int64
	gives bool
}

func (p *partial) Allow(ctx context.Context, key string) (bool, error) {
	n, err := p.rdb.Incr(ctx, key).Result()
	if err == nil && n == 1 && p.gives {
		err = p.rdb.Del(ctx, key).Err()
	}
	return n <= p.limit, err
}

// A limiter that goes by the number of an instance or of a request leaks in some orders of callers that seem to be
// alike.
func TestCallersAreNotAlike(t *testing.T) {
	for _, right := range []bool{true, false} {
		library := strategies.FromFunc("partial", []quota.Kind{quota.Standing},
			func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return &partial{strategies.Redis(env), p.Limit, env.Instance == 1 && !right}, nil
			})
		foreign := library
		foreign.Foreign = true
		memory := plant(func(_ context.Context, p *planted, r quota.Request) (quota.Decision, error) {
			ok := p.seen < r.Policy.Limit
			if ok && (right || r.ID == 1) {
				p.seen++
			}
			return verdict(ok, nil)
		})
		for name, c := range map[string]struct {
			meta      *strategies.Meta
			instances int
		}{"library": {&library, 2}, "foreign": {&foreign, 2}, "memory": {memory.Meta, 1}} {
			sel, err := c.meta.Select(nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := explore.Run(t.Context(), sel,
				explore.Config{Clients: 2, Limit: 1, Instances: c.instances, Properties: []explore.Property{explore.Leak}})
			if err != nil || right != (r.Found(explore.Leak) == nil) || right != (r.Claim != "") {
				t.Errorf("%s, right %t: %+v, %v", name, right, r, err)
			}
		}
	}
}
