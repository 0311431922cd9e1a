package reserve

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var checkThenSetMeta = strategies.Meta{
	Name:      "check-then-set",
	Core:      true,
	Needs:     []strategies.Need{strategies.NeedRedis},
	Kinds:     family.Windowed,
	Reset:     strategies.ResetsNever,
	GivesBack: true,
	Counts:    quota.CountsAdmitted,
	Control:   strategies.ControlRacy,
	// No clause: a late SET erases any number of reservations made since its GET.
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &checkThenSet{redis: strategies.Redis(env), keys: newKeys(env)}, nil
	},
}

// checkThenSet writes the sum of what it read and what it was asked for. The
// limit itself may be used up, as in the record's script; the strict comparison
// in its time line is true of the amounts there either way.
type checkThenSet struct {
	redis redis.UniversalClient
	keys  keys
}

// Take implements [strategies.Strategy].
func (s *checkThenSet) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	key := s.keys.used(req.Policy.Name, req.Subject)
	used, err := s.get(ctx, key, req.Subject)
	if err != nil {
		return quota.Decision{}, err
	}
	d := quota.Decision{Tier: quota.TierRedis, Remaining: max(0, req.Policy.Limit-used)}
	if used+req.Units > req.Policy.Limit {
		return d, nil
	}
	if err := s.set(ctx, key, req.Subject, used+req.Units); err != nil {
		return quota.Decision{}, err
	}
	return family.Admit(d, req, 0), nil
}

// Refund implements [strategies.Refunder], with the same race: what others write
// between its two commands is lost.
func (s *checkThenSet) Refund(ctx context.Context, r quota.Reservation) error {
	if r.Request.Policy == nil {
		return family.ErrNoReservation
	}
	key := s.keys.used(r.Request.Policy.Name, r.Request.Subject)
	used, err := s.get(ctx, key, r.Request.Subject)
	if err != nil {
		return err
	}
	return s.set(ctx, key, r.Request.Subject, max(0, used-r.Request.Units))
}

// get reads a count; a missing one is 0.
func (s *checkThenSet) get(ctx context.Context, key string, subject quota.Subject) (int64, error) {
	used, _, err := family.Number(ctx, s.redis, key)
	if err != nil {
		return 0, fmt.Errorf("reading what %s has used: %w", subject, err)
	}
	return used, nil
}

func (s *checkThenSet) set(ctx context.Context, key string, subject quota.Subject, used int64) error {
	return family.Wrapf(s.redis.Set(ctx, key, used, 0).Err(), "writing what %s has used", subject)
}

// Used implements [strategies.Viewer].
func (s *checkThenSet) Used(ctx context.Context, subject quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	return family.Reading(ctx, s.redis, s.keys.used(p.Name, subject), subject)
}

// Provision implements [strategies.Provisioner].
func (s *checkThenSet) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	if err := family.OneLimit(p, grants); err != nil {
		return err
	}
	return family.Provision(ctx, s.redis, grants, func(pipe redis.Pipeliner, g strategies.Grant) {
		pipe.Set(ctx, s.keys.used(p.Name, g.Subject), g.Used, 0)
	})
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (s *checkThenSet) Close(context.Context) error { return nil }
