package sliding

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	counterScript       = family.Script(files, "counter.lua")
	counterRefundScript = family.Script(files, "counter_refund.lua")
)

var counterMeta = strategies.Meta{
	Name:      "sliding-counter",
	Needs:     []strategies.Need{strategies.NeedRedis},
	Kinds:     []quota.Kind{quota.Rolling, quota.Fixed},
	GivesBack: true,
	Counts:    quota.CountsAdmitted,
	Guarantee: []quota.Clause{
		{
			Property: quota.PropertyLeak, Kinds: []quota.Kind{quota.Fixed}, Tolerates: []quota.Fault{quota.FaultCrash},
			Formula: "L", Bound: family.None,
		},
		quota.Weighted(quota.FaultCrash),
		// What was weighed may have left the rolling window long ago.
		quota.MayReject(quota.FaultCrash, quota.FaultClock),
	},
	Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		base, err := openBase(ctx, env, counterScript, counterRefundScript)
		return &slidingCounter{base: base, clock: env.Clock}, err
	},
}

// slidingCounter keeps a counter per subject and numbered window. Refunds are not
// recognised when they are repeated, so no clause tolerates that.
type slidingCounter struct {
	base
	clock quota.Clock
}

// numbered is the tumbling window of that length.
func numbered(window quota.Window) quota.Window {
	window.Kind = quota.Fixed
	return window
}

// Take implements [strategies.Strategy].
func (s *slidingCounter) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	policy := req.Policy
	now := s.clock.Now()
	span := numbered(policy.Window).At(now)
	whole := span.End.Sub(span.Start)
	decision, err := s.answer(ctx, counterScript, s.counters(req.Subject, policy, span.Index),
		policy.Limit, req.Units, micros(span.End.Sub(now)), micros(whole), lifetime(2*whole))
	if decision.Admitted {
		decision.Reservation = quota.Reservation{Request: req, Window: span.Index}
	}
	return decision, err
}

// Refund implements [strategies.Refunder].
func (s *slidingCounter) Refund(ctx context.Context, reservation quota.Reservation) error {
	if reservation.Request.Policy == nil {
		return family.ErrNoReservation
	}
	keys := s.counters(reservation.Request.Subject, reservation.Request.Policy, reservation.Window)[:1]
	err := counterRefundScript.Run(ctx, s.redis, keys, reservation.Request.Units).Err()
	return family.Wrapf(err, "refunding %d units", reservation.Request.Units)
}

// Used implements [strategies.Viewer]: what is counted in the numbered window, and
// under a rolling policy what the window before weighs, rounded up.
func (s *slidingCounter) Used(ctx context.Context, subject quota.Subject,
	policy *quota.Policy) ([]quota.Reading, error) {
	now := s.clock.Now()
	span := numbered(policy.Window).At(now)
	values, err := s.redis.MGet(ctx, s.counters(subject, policy, span.Index)...).Result()
	if err != nil {
		return nil, fmt.Errorf("reading the counters of %s: %w", subject, err)
	}
	reading := quota.Reading{Tier: quota.TierRedis}
	var counts [2]int64
	for i, value := range values {
		text, ok := value.(string)
		if !ok {
			continue
		}
		counts[i], err = strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the counters of %s: %w", subject, err)
		}
		reading.Known = reading.Known || i == 0 || policy.Window.Kind == quota.Rolling
	}
	reading.Units = counts[0]
	if policy.Window.Kind == quota.Rolling {
		reading.Units += int64(math.Ceil(float64(counts[1]) * float64(span.End.Sub(now)) / float64(span.End.Sub(span.Start))))
	}
	return []quota.Reading{reading}, nil
}

// Provision implements [strategies.Provisioner]: it sets the counter of the window in
// force, and drops the one before.
func (s *slidingCounter) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	span := numbered(policy.Window).At(s.clock.Now())
	return family.ProvisionAlike(ctx, s.redis, policy, grants, func(pipe redis.Pipeliner, grant strategies.Grant) {
		keys := s.counters(grant.Subject, policy, span.Index)
		pipe.Del(ctx, keys...)
		if grant.Used > 0 {
			pipe.Set(ctx, keys[0], grant.Used, time.Duration(lifetime(2*span.End.Sub(span.Start)))*time.Millisecond)
		}
	})
}

// counters are the keys of a window and of the one before. What lies in braces
// decides where a cluster keeps a key, so that it keeps both in one place.
func (s *slidingCounter) counters(subject quota.Subject, policy *quota.Policy, index int64) []string {
	name := s.prefix + "{" + policy.Name + ":" + string(subject) + "}:"
	return []string{name + strconv.FormatInt(index, 10), name + strconv.FormatInt(index-1, 10)}
}
