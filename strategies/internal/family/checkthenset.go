package family

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// CheckThenSet writes the sum of what it read in Redis and what it was asked for. The
// limit itself may be used up, as in the script of ADR-RM-3; the strict comparison
// in its time line is true of the amounts there either way.
type CheckThenSet struct {
	Redis redis.UniversalClient
	// Key names what a subject has used under the policy of that name.
	Key func(policy string, subject quota.Subject) string
}

// Take implements [strategies.Strategy].
func (c *CheckThenSet) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	key := c.Key(req.Policy.Name, req.Subject)
	used, err := c.get(ctx, key, req.Subject)
	if err != nil {
		return quota.Decision{}, err
	}
	decision := quota.Decision{Tier: quota.TierRedis, Remaining: max(0, req.Policy.Limit-used)}
	if used+req.Units > req.Policy.Limit {
		return decision, nil
	}
	if err := c.set(ctx, key, req.Subject, used+req.Units); err != nil {
		return quota.Decision{}, err
	}
	return Admit(decision, req, 0), nil
}

// Refund implements [strategies.Refunder], with the same race: what others write
// between its two commands is lost. It remembers nothing: a reservation that is refunded
// twice gives its units back twice.
func (c *CheckThenSet) Refund(ctx context.Context, reservation quota.Reservation) error {
	if reservation.Request.Policy == nil {
		return ErrNoReservation
	}
	key := c.Key(reservation.Request.Policy.Name, reservation.Request.Subject)
	used, err := c.get(ctx, key, reservation.Request.Subject)
	if err != nil {
		return err
	}
	return c.set(ctx, key, reservation.Request.Subject, max(0, used-reservation.Request.Units))
}

// get reads a count; a missing one is 0.
func (c *CheckThenSet) get(ctx context.Context, key string, subject quota.Subject) (int64, error) {
	used, _, err := Number(ctx, c.Redis, key)
	if err != nil {
		return 0, fmt.Errorf("reading what %s has used: %w", subject, err)
	}
	return used, nil
}

func (c *CheckThenSet) set(ctx context.Context, key string, subject quota.Subject, used int64) error {
	return Wrapf(c.Redis.Set(ctx, key, used, 0).Err(), "writing what %s has used", subject)
}

// Used implements [strategies.Viewer].
func (c *CheckThenSet) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return Reading(ctx, c.Redis, c.Key(policy.Name, subject), subject)
}

// Provision implements [strategies.Provisioner].
func (c *CheckThenSet) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	return ProvisionAlike(ctx, c.Redis, policy, grants, func(pipe redis.Pipeliner, grant strategies.Grant) {
		pipe.Set(ctx, c.Key(policy.Name, grant.Subject), grant.Used, 0)
	})
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (c *CheckThenSet) Close(context.Context) error { return nil }

// Locked is a [CheckThenSet] whose commands are under a lock of the subject.
type Locked struct {
	CheckThenSet
	// Lock waits for the lock, and returns what lets go of it.
	Lock func(ctx context.Context, policy *quota.Policy, subject quota.Subject) (unlock func(), err error)
}

// Take implements [strategies.Strategy].
func (l *Locked) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	unlock, err := l.Lock(ctx, req.Policy, req.Subject)
	if err != nil {
		return quota.Decision{}, err
	}
	defer unlock()
	return l.CheckThenSet.Take(ctx, req)
}

// Refund implements [strategies.Refunder].
func (l *Locked) Refund(ctx context.Context, reservation quota.Reservation) error {
	if reservation.Request.Policy == nil {
		return ErrNoReservation
	}
	unlock, err := l.Lock(ctx, reservation.Request.Policy, reservation.Request.Subject)
	if err != nil {
		return err
	}
	defer unlock()
	return l.CheckThenSet.Refund(ctx, reservation)
}
