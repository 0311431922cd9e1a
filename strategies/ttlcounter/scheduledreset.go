package ttlcounter

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

const (
	jobReset = "reset"
	// resetEvery is how often a scheduler looks for work that is due.
	resetEvery = time.Minute
	// mostResets is how many resets can fall into one window: one that began before
	// it, that of an earlier window which is late, and its own.
	mostResets = 3
	// deleteBatch is how many counters are deleted in a round trip.
	deleteBatch = 1000
)

func init() {
	family.Register(files, family.PerWindow(strategies.Meta{
		Name:   "scheduled-reset",
		Reset:  strategies.ResetsMissing,
		Counts: quota.CountsAttempts,
		Options: []quota.Option{
			{Name: "late", Type: "duration", Min: "0s", Default: "0s"},
			{Name: "missed", Type: "int", Min: "0", Default: "0"},
		},
		Guarantee: []quota.Clause{
			// Between two resets no more than the limit is admitted.
			{
				Property: quota.PropertyLeak, Tolerates: []quota.Fault{quota.FaultClock},
				Formula: "L + 3 x L",
				Bound:   func(p quota.Params) int64 { return mostResets * p.Limit },
			},
			quota.MayReject(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultClock, quota.FaultEviction, quota.FaultOutage),
		},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			late, missed := env.Options.Duration("late"), env.Options.Int("missed")
			return &scheduledReset{
				counter:  newCounter(env, userLinks),
				wake:     env.Wake,
				schedule: strategies.SharedValue(env.Shared, "reset-schedule", func() *schedule { return newSchedule(late, missed) }),
			}, nil
		},
	}))
}

// scheduledReset is one instance of scheduled-reset.
type scheduledReset struct {
	counter        // a subject's one counter is at its base
	wake           func(job string)
	schedule       *schedule
	resets, missed atomic.Int64
}

// Take implements [strategies.Strategy]. The subject is known to the job before its
// counter exists.
func (s *scheduledReset) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	p, now := req.Policy, s.clock.Now()
	span := p.Window.At(now)
	if s.schedule.see(req.Subject, p, now) {
		s.wake(jobReset)
	}
	n, err := s.redis.IncrBy(ctx, s.base(req.Subject, p.Name), req.Units).Result()
	if err != nil {
		return s.unanswered(ctx, err)
	}
	return family.Decided(n <= p.Limit, p.Limit-n, span.End, now), nil
}

// Used implements [strategies.Viewer].
func (s *scheduledReset) Used(ctx context.Context, subject quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	return family.Reading(ctx, s.redis, s.base(subject, p.Name), subject)
}

// Provision implements [strategies.Provisioner].
func (s *scheduledReset) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	now := s.clock.Now()
	for _, g := range grants {
		s.schedule.see(g.Subject, p, now)
	}
	return family.ProvisionCounters(ctx, s.redis, p, grants, func(subject quota.Subject) string { return s.base(subject, p.Name) },
		func(pipe redis.Pipeliner, key string, used int64) { pipe.Set(ctx, key, used, 0) })
}

// Jobs implements [strategies.Jobber].
func (s *scheduledReset) Jobs() []strategies.Job {
	return []strategies.Job{{
		Name: jobReset, Singleton: true, Every: resetEvery,
		Pending: func() bool { return len(s.schedule.due(s.clock.Now())) > 0 },
		Run:     s.reset,
	}}
}

// reset deletes the counters of every policy of which a window has begun. If that
// fails it is tried again from the start.
func (s *scheduledReset) reset(ctx context.Context) (changed bool, err error) {
	for _, d := range s.schedule.due(s.clock.Now()) {
		if d.missed {
			s.missed.Add(1)
			s.schedule.done(d)
			continue
		}
		for subjects := range slices.Chunk(d.subjects, deleteBatch) {
			keys := make([]string, len(subjects))
			for i, subject := range subjects {
				keys[i] = s.base(subject, d.policy)
			}
			if err := s.redis.Del(ctx, keys...).Err(); err != nil {
				return changed, fmt.Errorf("delete %d counters of %s: %w", len(keys), d.policy, err)
			}
			changed = true
		}
		s.resets.Add(1)
		s.schedule.done(d)
	}
	return changed, nil
}

// Measures implements [strategies.Meter].
func (s *scheduledReset) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "resets", Unit: "resets", Value: s.resets.Load()},
		{Name: "resets missed", Unit: "resets", Value: s.missed.Load()},
	}
}
