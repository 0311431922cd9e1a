package ttlcounter

import (
	"context"

	"github.com/quotabench/quotabench/quota"
)

// countdown is a counter of what is left of the limit, as ADR-009 keeps it.
type countdown struct{ counter }

// decrement uses the record's DECR wherever it says the same as DECRBY.
func (c *countdown) decrement(ctx context.Context, key string, units int64) (left int64, err error) {
	if units == 1 {
		return c.redis.Decr(ctx, key).Result()
	}
	return c.redis.DecrBy(ctx, key, units).Result()
}

// Used implements [strategies.Viewer]: what is not left has been used.
func (c *countdown) Used(ctx context.Context, subject quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	readings, err := c.counter.Used(ctx, subject, p)
	if err == nil && readings[0].Known {
		readings[0].Units = p.Limit - readings[0].Units
	}
	return readings, err
}
