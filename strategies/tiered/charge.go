package tiered

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/quota"
)

// charge adds units, which may be negative, in the way of the option "write".
// What fails on the way leaves the steps before it done; charged says whether the
// units had been added by then.
func (in *instance) charge(ctx context.Context, u *use, req quota.Request, units int64) (charged bool, err error) {
	if in.write == writeBackMode {
		return in.chargeCache(ctx, u, req, units)
	}
	return in.chargeSource(ctx, u, req, units)
}

// chargeCache adds to the cached count, marks the agent for the filters of all
// instances if it has now reached its limit, and queues the new count for the
// table.
func (in *instance) chargeCache(ctx context.Context, u *use, req quota.Request, units int64) (charged bool, err error) {
	count, err := in.addToHash(ctx, u, req, units)
	if err != nil {
		return false, err
	}
	if in.chargeRefreshes {
		if err := in.expire(ctx, req); err != nil {
			return true, err
		}
	}
	if in.filter != nil {
		limit, err := in.cachedLimit(ctx, u, req.Subject)
		if err != nil {
			return true, err
		}
		if count >= limit {
			if err := in.redis.SAdd(ctx, in.overQuota(), string(req.Subject)).Err(); err != nil {
				return true, fmt.Errorf("mark %s over quota: %w", req.Subject, err)
			}
		}
	}
	now := in.clock.Now().UnixNano()
	in.queue.put(writeBack{subject: req.Subject, use: u, count: count, queued: now, due: now + int64(in.lag)})
	in.wake(jobWriteBack)
	return true, nil
}

// chargeSource adds to the table, drops the cached counts, and marks the agent
// for the filter of this instance only. As the listing stands, it also adds to
// the count that it has just dropped, which begins anew at these units.
func (in *instance) chargeSource(ctx context.Context, u *use, req quota.Request,
	units int64) (charged bool, err error) {
	count, err := in.source.charge(ctx, u, req.Subject, units)
	if err != nil {
		return false, fmt.Errorf("charge %d %s: %w", units, u.unit, fromSource(err))
	}
	if err := in.redis.Del(ctx, in.counts(req.Subject)).Err(); err != nil {
		return true, fmt.Errorf("drop what %s has used: %w", req.Subject, err)
	}
	if in.write == writeLiteralMode {
		if _, err := in.addToHash(ctx, u, req, units); err != nil {
			return true, err
		}
		if err := in.expire(ctx, req); err != nil {
			return true, err
		}
	}
	if in.filter == nil {
		return true, nil
	}
	limit, err := in.source.limit(ctx, u, req.Subject)
	if err != nil {
		return true, fmt.Errorf("read the limit of %s: %w", req.Subject, fromSource(err))
	}
	if count >= limit {
		in.filter.add(req.Subject)
	}
	return true, nil
}

func (in *instance) addToHash(ctx context.Context, u *use, req quota.Request, units int64) (int64, error) {
	count, err := in.redis.HIncrBy(ctx, in.counts(req.Subject), u.field, units).Result()
	if err != nil {
		return 0, fmt.Errorf("charge %d %s: %w", units, u.unit, err)
	}
	return count, nil
}

// chargesLater reports whether a request is charged when its work is done, and
// not when it is admitted.
func (in *instance) chargesLater(req quota.Request) bool { return !in.chargeFirst && req.Settles }

// Commit charges what the work took, or if the request was charged on admission,
// the difference.
func (in *instance) Commit(ctx context.Context, reservation quota.Reservation, actual int64) error {
	units := actual
	if !in.chargesLater(reservation.Request) {
		units -= reservation.Request.Units
	}
	return in.settle(ctx, reservation, units)
}

// Refund charges a negative amount, unless nothing was charged yet. It remembers
// nothing: a reservation that is refunded twice gives its units back twice.
func (in *instance) Refund(ctx context.Context, reservation quota.Reservation) error {
	if in.chargesLater(reservation.Request) && !reservation.Committed {
		return nil
	}
	return in.settle(ctx, reservation, -reservation.Request.Units)
}

func (in *instance) settle(ctx context.Context, reservation quota.Reservation, units int64) error {
	if units == 0 {
		return nil
	}
	use, err := useOf(in.uses, reservation.Request.Policy)
	if err != nil {
		return err
	}
	if charged, err := in.charge(ctx, use, reservation.Request, units); err != nil {
		if !charged {
			in.chargeFailed.Add(max(units, 0))
		}
		return err
	}
	return nil
}
