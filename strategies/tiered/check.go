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
	"github.com/quotabench/quotabench/strategies/internal/family"
)

func (in *instance) counts(subject quota.Subject) string {
	return in.prefix + "quota:" + string(subject)
}
func (in *instance) limits(subject quota.Subject) string {
	return in.prefix + "limits:" + string(subject)
}
func (in *instance) overQuota() string { return in.prefix + "over_quota" }

// checkCache decides by the cache, and by the table if the cache has no count.
// With ttl=access a hit gives the hash its hour anew, whatever the answer.
func (in *instance) checkCache(ctx context.Context, u *use, req quota.Request) (quota.Decision, error) {
	used, known, err := in.number(ctx, in.counts(req.Subject), u.field)
	if err != nil {
		return quota.Decision{}, err
	}
	if !known {
		in.misses.Add(1)
		return in.checkSource(ctx, u, req)
	}
	limit, err := in.cachedLimit(ctx, u, req.Subject)
	if err != nil {
		return quota.Decision{}, err
	}
	if in.accessRefreshes {
		if err := in.expire(ctx, req); err != nil {
			return quota.Decision{}, err
		}
	}
	return decide(used < limit, quota.TierRedis, used, limit, req), nil
}

// checkSource answers a miss: three statements, and then both hashes are
// overwritten with what they said, however old it has become.
func (in *instance) checkSource(ctx context.Context, u *use, req quota.Request) (quota.Decision, error) {
	subject := req.Subject
	hasRoom, err := in.reads.check(ctx, u, subject)
	if err != nil {
		return quota.Decision{}, fromSource(err)
	}
	used, err := in.reads.used(ctx, u, subject)
	if err != nil {
		return quota.Decision{}, fromSource(err)
	}
	limit, err := in.reads.limit(ctx, u, subject)
	if err != nil {
		return quota.Decision{}, fromSource(err)
	}
	if err := in.fill(ctx, u, req, used, limit); err != nil {
		// The prose has PostgreSQL decide without Redis, and it has decided.
		if in.down != downProse || !in.outage(ctx, err) {
			return quota.Decision{}, err
		}
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

// decide makes a decision of counts that were read before the charge.
func decide(admitted bool, tier quota.Tier, used, limit int64, req quota.Request) quota.Decision {
	if admitted {
		used += req.Units
	}
	return quota.Decision{Admitted: admitted, Tier: tier, Remaining: max(limit-used, 0)}
}

// cachedLimit reads a limit from Redis. One that is missing is an error: nothing
// asks the table for it as long as the count is there.
func (in *instance) cachedLimit(ctx context.Context, u *use, subject quota.Subject) (int64, error) {
	limit, known, err := in.number(ctx, in.limits(subject), u.limitField)
	if err == nil && !known {
		err = fmt.Errorf("%s of %s is missing: %w, %w", u.limitField, in.limits(subject), errMalformed,
			strategies.ErrPrescribed)
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

// expire gives the hash of counts its time to live anew, in whole seconds if
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
	return family.Wrapf(err, "set the time to live of %s", key)
}
