package tiered

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/quota"
)

// charge adds units, which may be negative, to the cached count, marks the agent
// if it has now reached its limit, and queues the new count for the table. What
// fails on the way leaves the steps before it done.
func (in *instance) charge(ctx context.Context, u *use, req quota.Request, units int64) error {
	count, err := in.redis.HIncrBy(ctx, in.counts(req.Subject), u.field, units).Result()
	if err != nil {
		return fmt.Errorf("charge %d %s: %w", units, u.unit, err)
	}
	if in.refresh {
		if err := in.expire(ctx, req); err != nil {
			return err
		}
	}
	if in.filter != nil {
		limit, err := in.cachedLimit(ctx, u, req.Subject)
		if err != nil {
			return err
		}
		if count >= limit {
			if err := in.redis.SAdd(ctx, in.overQuota(), string(req.Subject)).Err(); err != nil {
				return fmt.Errorf("mark %s over quota: %w", req.Subject, err)
			}
		}
	}
	in.queue.put(writeBack{subject: req.Subject, use: u, count: count})
	in.wake(jobWriteBack)
	return nil
}
