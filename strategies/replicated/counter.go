package replicated

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	takeScript   = family.Script(files, "take.lua")
	refundScript = family.Script(files, "refund.lua")
)

// The verdicts of take.lua.
const (
	counted int64 = 1
	over    int64 = 2
)

// grace is how long a counter outlives its window, by Redis' clock: room for late
// requests and for clocks that differ.
const grace = 5 * time.Second

// caller runs a script on the counter with that key, and returns what it answered.
type caller func(ctx context.Context, script *redis.Script, key string, args ...any) ([]int64, error)

// counter is a counter for each subject, policy and window, which scripts alone
// change.
type counter struct {
	redis redis.UniversalClient
	clock quota.Clock
	// family begins every key.
	family string
	call   caller
}

// openCounter loads the scripts into the store of that name.
func openCounter(ctx context.Context, env strategies.Env, store strategies.Need) (*counter, error) {
	client, ok := env.Clients[string(store)].(redis.UniversalClient)
	if !ok {
		return nil, fmt.Errorf("the store %s has no Redis client", store)
	}
	if err := family.Load(ctx, client, takeScript, refundScript); err != nil {
		return nil, fmt.Errorf("the store %s: %w", store, err)
	}
	c := &counter{redis: client, clock: env.Clock, family: env.Prefix + "quota:"}
	c.call = func(ctx context.Context, script *redis.Script, key string, args ...any) ([]int64, error) {
		return script.Run(ctx, c.redis, []string{key}, args...).Int64Slice()
	}
	return c, nil
}

// key is a subject's counter of one window. Names of policies hold no colon.
func (c *counter) key(policy *quota.Policy, window int64, subject quota.Subject) string {
	return c.family + policy.Name + ":" + strconv.FormatInt(window, 10) + ":" + string(subject)
}

// expiry is when a window's counter goes, in milliseconds since 1970; 0 for never.
func expiry(span quota.Span) int64 {
	if span.End.IsZero() {
		return 0
	}
	return span.End.Add(grace).UnixMilli()
}

// Take implements [strategies.Strategy].
func (c *counter) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	policy := req.Policy
	// If the window is over by Redis' clock, the next one is asked, once.
	for range 2 {
		now := c.clock.Now()
		span := policy.Window.At(now)
		res, err := c.call(ctx, takeScript, c.key(policy, span.Index, req.Subject), req.Units, policy.Limit, expiry(span))
		if err != nil {
			return quota.Decision{}, fmt.Errorf("take for %s: %w", req.Subject, err)
		}
		if len(res) != 2 {
			return quota.Decision{}, fmt.Errorf("take.lua answered %v", res)
		}
		if res[0] == over {
			continue
		}
		decision := family.Decided(res[0] == counted, policy.Limit-res[1], span.End, now)
		if decision.Admitted {
			decision.Reservation = quota.Reservation{Request: req, Window: span.Index}
		}
		return decision, nil
	}
	return quota.Decision{}, fmt.Errorf("take for %s: this clock is behind that of Redis by more than %v", req.Subject,
		grace)
}

// Refund implements [strategies.Refunder]. It remembers nothing: a reservation that is
// refunded twice gives its units back twice.
func (c *counter) Refund(ctx context.Context, reservation quota.Reservation) error {
	req := reservation.Request
	if req.Policy == nil {
		return family.ErrNoReservation
	}
	_, err := c.call(ctx, refundScript, c.key(req.Policy, reservation.Window, req.Subject), req.Units)
	return family.Wrapf(err, "refund for %s", req.Subject)
}

// Used implements [strategies.Viewer].
func (c *counter) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return family.Reading(ctx, c.redis, c.key(policy, policy.Window.At(c.clock.Now()).Index, subject), subject)
}

// Provision implements [strategies.Provisioner].
func (c *counter) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	span := policy.Window.At(c.clock.Now())
	return family.ProvisionCounters(ctx, c.redis, policy, grants, func(subject quota.Subject) string {
		return c.key(policy, span.Index, subject)
	},
		func(pipe redis.Pipeliner, key string, used int64) {
			pipe.Set(ctx, key, used, 0)
			if ends := expiry(span); ends > 0 {
				pipe.PExpireAt(ctx, key, time.UnixMilli(ends))
			}
		})
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (c *counter) Close(context.Context) error { return nil }

// redisDurableMeta is of a counter in a store whose every write is on disk before its caller hears of it. The store is
// what makes it durable: nothing here does.
var redisDurableMeta = meta(strategies.Meta{
	Name:  "redis-durable",
	Needs: []strategies.Need{needDurable},
	Guarantee: []quota.Clause{
		// A refund that is made twice, by a client that repeats it or a caller that never
		// saw the reply, gives units of others back.
		quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
		family.NoFalseReject(),
	},
	Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		return openCounter(ctx, env, needDurable)
	},
})
