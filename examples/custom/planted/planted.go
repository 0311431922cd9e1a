// Package planted has two limiters with a bug each. The tests of this example
// show that quotabench finds both.
package planted

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// offByOne compares with > where >= was meant: one request too many passes.
type offByOne struct{ base }

var script = redis.NewScript(`
local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
local n = redis.call('ZCARD', KEYS[1])
if n > limit then
	return 0
end
redis.call('ZADD', KEYS[1], now, ARGV[1] .. ':' .. n)
return 1
`)

func (l *offByOne) Allow(ctx context.Context, key string) (bool, error) {
	n, err := script.Run(ctx, l.client, []string{key}, l.now().UnixMicro(), l.window.Microseconds(), l.limit).Int64()
	return n == 1, err
}

// racy counts, and then adds: between the two commands others count as well.
type racy struct{ base }

func (l *racy) Allow(ctx context.Context, key string) (bool, error) {
	now := l.now().UnixMicro()
	if err := l.client.ZRemRangeByScore(ctx, key, "0",
		strconv.FormatInt(now-l.window.Microseconds(), 10)).Err(); err != nil {
		return false, err
	}
	n, err := l.client.ZCard(ctx, key).Result()
	if err != nil || n >= l.limit {
		return false, err
	}
	id, err := l.client.Incr(ctx, key+":id").Result()
	if err != nil {
		return false, err
	}
	return true, l.client.ZAdd(ctx, key, redis.Z{Score: float64(now), Member: id}).Err()
}

// base is what both limiters are made from.
type base struct {
	client redis.UniversalClient
	limit  int64
	window time.Duration
	now    func() time.Time
}

func init() {
	register("off-by-one", "sorted set, compared with > instead of >=", func(b base) strategies.Allower {
		return &offByOne{b}
	})
	register("count-then-add", "sorted set, counted and added to in separate commands", func(b base) strategies.Allower {
		return &racy{b}
	})
}

func register(name, doc string, limiter func(base) strategies.Allower) {
	meta := strategies.FromFunc(name, []quota.Kind{quota.Rolling},
		func(_ context.Context, env strategies.Env, policy *quota.Policy) (strategies.Allower, error) {
			return limiter(base{strategies.Redis(env), policy.Limit, policy.Window.RealLength(), env.Clock.Now}), nil
		})
	meta.Doc = doc
	meta.Guarantee = []quota.Clause{quota.Exactly()}
	strategies.Register(meta)
}
