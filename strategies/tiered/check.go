package tiered

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// errMalformed marks what a store answered, but not as it should have: nothing
// that asking another store would mend.
var errMalformed = errors.New("not as it should be")

func isNoAgent(err error) bool { return errors.Is(err, errNoAgent) }

func (in *instance) counts(s quota.Subject) string { return in.prefix + "quota:" + string(s) }
func (in *instance) limits(s quota.Subject) string { return in.prefix + "limits:" + string(s) }
func (in *instance) overQuota() string             { return in.prefix + "over_quota" }

// gaveUp reports whether the caller's context is over.
func (in *instance) gaveUp(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	// A connection can time out on the caller's deadline just before ctx knows.
	deadline, ok := ctx.Deadline()
	return ok && !in.clock.Now().Before(deadline)
}

// outage reports whether err means that a store could not be reached, rather
// than that it answered wrongly or that the caller gave up.
func (in *instance) outage(ctx context.Context, err error) bool {
	return !in.gaveUp(ctx) && !errors.Is(err, errMalformed) && !isNoAgent(err)
}

// check decides by the cache, and by the table where the cache has no count.
func (in *instance) check(ctx context.Context, u *use, req quota.Request) (quota.Decision, error) {
	used, known, err := in.number(ctx, in.counts(req.Subject), u.field)
	if err == nil && !known {
		return in.checkSource(ctx, u, req)
	}
	var limit int64
	if err == nil {
		limit, err = in.cachedLimit(ctx, u, req.Subject)
	}
	switch {
	case err == nil:
		return decide(used < limit, quota.TierRedis, used, limit, req), nil
	case in.outage(ctx, err):
		return in.fallBack(ctx, u, req)
	default:
		return quota.Decision{}, err
	}
}

// checkSource answers a miss: three statements, and then both hashes are
// overwritten with what they said, however old it has become.
func (in *instance) checkSource(ctx context.Context, u *use, req quota.Request) (quota.Decision, error) {
	in.misses.Add(1)
	s := req.Subject
	hasRoom, err := in.source.check(ctx, u, s)
	if err != nil {
		return in.failOpen(ctx, err)
	}
	used, err := in.source.used(ctx, u, s)
	if err != nil {
		return in.failOpen(ctx, err)
	}
	limit, err := in.source.limit(ctx, u, s)
	if err != nil {
		return in.failOpen(ctx, err)
	}
	if err := in.fill(ctx, u, req, used, limit); err != nil && !in.outage(ctx, err) {
		return quota.Decision{}, err
	}
	return decide(hasRoom, in.source.tier(), used, limit, req), nil
}

// fill overwrites what the cache has of one kind of use.
func (in *instance) fill(ctx context.Context, u *use, req quota.Request, used, limit int64) error {
	if err := in.redis.HSet(ctx, in.counts(req.Subject), u.field, used).Err(); err != nil {
		return fmt.Errorf("cache the count: %w", err)
	}
	if err := in.redis.HSet(ctx, in.limits(req.Subject), u.limitField, limit).Err(); err != nil {
		return fmt.Errorf("cache the limit: %w", err)
	}
	return in.expire(ctx, req)
}

// fallBack decides without Redis.
func (in *instance) fallBack(ctx context.Context, u *use, req quota.Request) (quota.Decision, error) {
	hasRoom, err := in.source.check(ctx, u, req.Subject)
	if err != nil {
		return in.failOpen(ctx, err)
	}
	return quota.Decision{Admitted: hasRoom, Tier: in.source.tier(), Degraded: true, Remaining: -1}, nil
}

// failOpen admits where the last store that could decide is gone.
func (in *instance) failOpen(ctx context.Context, err error) (quota.Decision, error) {
	if !in.outage(ctx, err) {
		return quota.Decision{}, fmt.Errorf("ask the database of record: %w", err)
	}
	return quota.Decision{Admitted: true, Tier: quota.TierProcess, Degraded: true, Remaining: -1}, nil
}

// decide makes a decision of counts that were read before the charge.
func decide(admitted bool, t quota.Tier, used, limit int64, req quota.Request) quota.Decision {
	if admitted {
		used += req.Units
	}
	return quota.Decision{Admitted: admitted, Tier: t, Remaining: max(limit-used, 0)}
}

// cachedLimit reads a limit from Redis. One that is missing is an error: nothing
// asks the table for it as long as the count is there.
func (in *instance) cachedLimit(ctx context.Context, u *use, s quota.Subject) (int64, error) {
	limit, known, err := in.number(ctx, in.limits(s), u.limitField)
	if err == nil && !known {
		err = fmt.Errorf("%s of %s is missing: %w, %w", u.limitField, in.limits(s), errMalformed, strategies.ErrPrescribed)
	}
	return limit, err
}

// number reads a field of a hash.
func (in *instance) number(ctx context.Context, key, field string) (n int64, known bool, err error) {
	text, err := in.redis.HGet(ctx, key, field).Result()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read %s of %s: %w", field, key, err)
	}
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%s of %s is %q: %w", field, key, text, errMalformed)
	}
	return n, true, nil
}

// expire gives the hash of counts its time to live anew, in whole seconds where
// the policy's timeline leaves it so.
func (in *instance) expire(ctx context.Context, req quota.Request) error {
	ttl := max(req.Policy.Window.Timeline.Scale(hashTTL), time.Millisecond)
	key := in.counts(req.Subject)
	var err error
	if ttl%time.Second == 0 {
		err = in.redis.Expire(ctx, key, ttl).Err()
	} else {
		err = in.redis.PExpire(ctx, key, ttl).Err()
	}
	if err != nil {
		return fmt.Errorf("set the time to live of %s: %w", key, err)
	}
	return nil
}
