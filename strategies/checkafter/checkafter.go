// Package checkafter holds the alternative of ADR-RM-3 that reserves nothing: a
// file is uploaded first, its quota is checked when it is there, and what is too
// much is deleted again.
package checkafter

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md
var files embed.FS

func init() {
	family.Register(files, family.GivingBack(strategies.Meta{
		Name:  "check-after",
		Needs: []strategies.Need{strategies.NeedRedis},
		Reset: strategies.ResetsNever,
		Options: []quota.Option{
			{Name: "size", Type: "int", Default: "1000000", Min: "1"},
			{Name: "bandwidth", Type: "int", Default: "0", Min: "0"},
		},
		Guarantee: []quota.Clause{
			// What is admitted was part of the sum that was checked. A DECRBY that is
			// repeated, also after a lost reply, takes off what others hold, and a lost key forgets it.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			// Uploads that are about to be deleted count against others.
			quota.MayReject(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultClock, quota.FaultOutage),
		},
		Open: open,
	}))
}

// checkAfter is one instance of check-after.
type checkAfter struct {
	redis  redis.UniversalClient
	clock  quota.Clock
	prefix string
	// size is bytes of a unit, bandwidth bytes per second of a client, or 0.
	size, bandwidth int64
	// uploaded and wasted are bytes, of all requests and of those undone.
	uploaded, wasted strategies.Tally
}

func open(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
	return &checkAfter{
		redis: strategies.Redis(env), clock: env.Clock, prefix: env.Prefix,
		size: env.Options.Int("size"), bandwidth: env.Options.Int("bandwidth"),
	}, nil
}

func (s *checkAfter) key(policy string, subject quota.Subject) string {
	return s.prefix + "stored:" + policy + ":" + string(subject)
}

// Take implements [strategies.Strategy]. It lasts as long as the upload: only then
// does the client learn whether it may keep its file.
func (s *checkAfter) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if err := s.upload(ctx, req.Units); err != nil {
		return quota.Decision{}, fmt.Errorf("uploading for %s: %w", req.Subject, err)
	}
	key := s.key(req.Policy.Name, req.Subject)
	stored, err := s.redis.IncrBy(ctx, key, req.Units).Result()
	if err != nil {
		return quota.Decision{}, fmt.Errorf("counting a file of %s: %w", req.Subject, err)
	}
	decision := quota.Decision{Tier: quota.TierRedis, Remaining: max(req.Policy.Limit-stored, 0)}
	if stored <= req.Policy.Limit {
		decision.Admitted = true
		decision.Reservation = quota.Reservation{Request: req}
		return decision, nil
	}
	s.wasted.Add(req.Units * s.size)
	stored, err = s.redis.DecrBy(ctx, key, req.Units).Result()
	if err != nil {
		return quota.Decision{}, fmt.Errorf("deleting a file of %s again: %w", req.Subject, err)
	}
	decision.Remaining = max(req.Policy.Limit-stored, 0)
	return decision, nil
}

// upload takes as long as the bytes of so many units take.
func (s *checkAfter) upload(ctx context.Context, units int64) error {
	bytes := units * s.size
	if s.bandwidth > 0 {
		took := time.Duration(float64(bytes) / float64(s.bandwidth) * float64(time.Second))
		if err := s.clock.Sleep(ctx, took); err != nil {
			return err
		}
	}
	s.uploaded.Add(bytes)
	return ctx.Err()
}

// Refund takes a file off the count. It keeps no record of having done so.
func (s *checkAfter) Refund(ctx context.Context, reservation quota.Reservation) error {
	if reservation.Request.Policy == nil {
		return family.ErrNoReservation
	}
	err := s.redis.DecrBy(ctx, s.key(reservation.Request.Policy.Name, reservation.Request.Subject),
		reservation.Request.Units).Err()
	return family.Wrapf(err, "deleting a file of %s", reservation.Request.Subject)
}

// Used implements [strategies.Viewer].
func (s *checkAfter) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return family.Reading(ctx, s.redis, s.key(policy.Name, subject), subject)
}

// Provision implements [strategies.Provisioner].
func (s *checkAfter) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	return family.ProvisionAlike(ctx, s.redis, policy, grants, func(pipe redis.Pipeliner, grant strategies.Grant) {
		pipe.Set(ctx, s.key(policy.Name, grant.Subject), grant.Used, 0)
	})
}

// Measures implements [strategies.Meter].
func (s *checkAfter) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "uploaded", Unit: "bytes", Value: s.uploaded.Load()},
		{Name: "wasted", Unit: "bytes", Value: s.wasted.Load()},
	}
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (s *checkAfter) Close(context.Context) error { return nil }
