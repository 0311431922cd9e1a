package ttlcounter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
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
				Bound:   func(params quota.Params) int64 { return mostResets * params.Limit },
			},
			quota.MayReject(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultClock, quota.FaultEviction,
				quota.FaultOutage),
		},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			late := env.Options.Duration("late")
			missed := env.Options.Int("missed")
			return &scheduledReset{
				counter: newCounter(env, userLinks),
				wake:    env.Wake,
				schedule: strategies.SharedValue(env.Shared, "reset-schedule", func() *schedule {
					return newSchedule(late, missed)
				}),
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
	policy := req.Policy
	now := s.clock.Now()
	span := policy.Window.At(now)
	if s.schedule.see(req.Subject, policy, now) {
		s.wake(jobReset)
	}
	n, err := s.redis.IncrBy(ctx, s.base(req.Subject, policy.Name), req.Units).Result()
	if err != nil {
		return s.unanswered(ctx, err)
	}
	return family.Decided(n <= policy.Limit, policy.Limit-n, span.End, now), nil
}

// Used implements [strategies.Viewer].
func (s *scheduledReset) Used(ctx context.Context, subject quota.Subject,
	policy *quota.Policy) ([]quota.Reading, error) {
	return family.Reading(ctx, s.redis, s.base(subject, policy.Name), subject)
}

// Provision implements [strategies.Provisioner].
func (s *scheduledReset) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	now := s.clock.Now()
	for _, grant := range grants {
		s.schedule.see(grant.Subject, policy, now)
	}
	return family.ProvisionCounters(ctx, s.redis, policy, grants, func(subject quota.Subject) string {
		return s.base(subject, policy.Name)
	},
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
	for _, reset := range s.schedule.due(s.clock.Now()) {
		if reset.missed {
			s.missed.Add(1)
			s.schedule.done(reset)
			continue
		}
		for subjects := range slices.Chunk(reset.subjects, deleteBatch) {
			keys := make([]string, len(subjects))
			for i, subject := range subjects {
				keys[i] = s.base(subject, reset.policy)
			}
			if err := s.redis.Del(ctx, keys...).Err(); err != nil {
				return changed, fmt.Errorf("delete %d counters of %s: %w", len(keys), reset.policy, err)
			}
			changed = true
		}
		s.resets.Add(1)
		s.schedule.done(reset)
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

// schedule tells an operator's reset job whose counters there are, and which
// window they belong to. All instances of a run see the same one.
type schedule struct {
	late   time.Duration // after a window's begin
	missed int64         // every so many resets; 0 is none

	// mu is never held across anything that waits.
	mu sync.Mutex
	of map[string]*plan // by policy
}

// plan is the schedule of one policy.
type plan struct {
	policy *quota.Policy
	// window is the one that counters were last reset for, or missed.
	window   int64
	subjects []quota.Subject
	known    map[quota.Subject]bool
}

// dueReset is a reset that is due.
type dueReset struct {
	policy   string
	window   int64
	missed   bool
	subjects []quota.Subject
}

func newSchedule(late time.Duration, missed int64) *schedule {
	return &schedule{late: late, missed: missed, of: map[string]*plan{}}
}

// see notes a subject and the policy in force, and reports whether a reset is due.
// What is counted first belongs to the window in force then.
func (s *schedule) see(subject quota.Subject, policy *quota.Policy, now time.Time) (due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of[policy.Name]
	if k == nil {
		k = &plan{window: policy.Window.At(now).Index, known: map[quota.Subject]bool{}}
		s.of[policy.Name] = k
	}
	k.policy = policy
	if !k.known[subject] {
		k.known[subject] = true
		k.subjects = append(k.subjects, subject)
	}
	return s.window(k, now) > k.window
}

// window is the one that counters should have been reset for by now.
func (s *schedule) window(k *plan, now time.Time) int64 {
	return k.policy.Window.At(now.Add(-s.late)).Index
}

// due returns the resets that are due. One that stands for several windows takes
// place if that of any of them does.
func (s *schedule) due(now time.Time) (due []dueReset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.of)) {
		k := s.of[name]
		w := s.window(k, now)
		if w <= k.window {
			continue
		}
		reset := dueReset{policy: name, window: w, missed: s.missed > 0, subjects: k.subjects}
		for i := k.window + 1; i <= w && reset.missed; i++ {
			reset.missed = i%s.missed == 0
		}
		due = append(due, reset)
	}
	return due
}

func (s *schedule) done(reset dueReset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of[reset.policy]
	k.window = max(k.window, reset.window)
}
