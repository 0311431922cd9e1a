package prove_test

import (
	"context"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// slots count what is held, and free it when the life of a request is over.
type slots struct {
	redis redis.UniversalClient
	clock quota.Clock
	// twoSteps is set if a caller counts first and notes in a further command when its slot is free again.
	twoSteps bool
}

var (
	occupySlot = redis.NewScript(`local gone = redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[2])
if gone > 0 then redis.call('DECRBY', KEYS[1], gone) end
if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[1]) then return 0 end
redis.call('INCR', KEYS[1])
if ARGV[5] == '1' then redis.call('ZADD', KEYS[2], ARGV[3], ARGV[4]) end
return 1`)
	freeSlot = redis.NewScript(`return redis.call('DECRBY', KEYS[1], redis.call('ZREM', KEYS[2], ARGV[1]))`)
)

func slotsLimiter(twoSteps bool) strategies.Meta {
	return strategies.Meta{
		Name: "slots", Doc: "counts what is held", Form: strategies.Library, GivesBack: true,
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.Standing}, Counts: quota.CountsNothing,
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return &slots{strategies.Redis(env), env.Clock, twoSteps}, nil
		},
	}
}

func (s *slots) keys(subject quota.Subject) []string {
	return []string{string(subject) + ":held", string(subject) + ":leases"}
}

// Take implements [strategies.Strategy].
func (s *slots) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := s.clock.Now()
	ends := math.Inf(1)
	if req.Settles && req.Life > 0 {
		ends = float64(now.Add(req.Life).UnixMilli())
	}
	keys := s.keys(req.Subject)
	n, err := occupySlot.Run(ctx, s.redis, keys, req.Policy.Limit, now.UnixMilli(), ends, req.ID, !s.twoSteps).Int64()
	if err == nil && n == 1 && s.twoSteps {
		err = s.redis.ZAdd(ctx, keys[1], redis.Z{Score: ends, Member: req.ID}).Err()
	}
	if err != nil {
		return quota.Decision{}, err
	}
	return quota.Decision{Admitted: n == 1, Tier: quota.TierRedis, Remaining: -1,
		Reservation: quota.Reservation{Request: req}}, nil
}

// Refund implements [strategies.Refunder].
func (s *slots) Refund(ctx context.Context, res quota.Reservation) error {
	return freeSlot.Run(ctx, s.redis, s.keys(res.Request.Subject), res.Request.ID).Err()
}

// Close implements [strategies.Strategy].
func (s *slots) Close(context.Context) error { return nil }
