package reserve

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// syncOptions say when the sync runs.
var syncOptions = []quota.Option{{
	Name: "sync", Type: "duration", Default: "24h", Min: "0s",
	Doc: "`period` of the sync job; 0s: never",
}, {
	Name: "demand", Default: demandNever, Values: []string{demandNever, demandRejected},
	Doc: "rejected: a rejection starts a sync",
}}

// The values of the option demand.
const (
	demandNever    = "never"
	demandRejected = "rejected"
)

// syncs is when an instance's sync runs.
type syncs struct {
	every    time.Duration
	onDemand bool
	wanted   *strategies.Flag
	wake     func(job string)
}

// onDemandJob is the name of the job that a rejection wakes.
const onDemandJob = "sync-on-demand"

func newSyncs(env strategies.Env) syncs {
	return syncs{
		every: env.Options.Duration("sync"), onDemand: env.Options["demand"] == demandRejected,
		wanted: new(strategies.Flag), wake: env.Wake,
	}
}

// want asks for a round, where one may be asked for.
func (s *syncs) want() {
	if s.onDemand {
		s.wanted.Store(true)
		s.wake(onDemandJob)
	}
}

// jobs are those that run a round: one for all instances by the clock, and one in
// each instance on demand.
func (s *syncs) jobs(round func(context.Context) (bool, error)) (jobs []strategies.Job) {
	if s.every > 0 {
		jobs = append(jobs, strategies.Job{Name: "sync", Singleton: true, Every: s.every, Run: round})
	}
	if s.onDemand {
		jobs = append(jobs, strategies.Job{Name: onDemandJob, Pending: s.wanted.Load, Run: func(ctx context.Context) (bool, error) {
			s.wanted.Store(false)
			return round(ctx)
		}})
	}
	return jobs
}

// Jobs implements [strategies.Jobber].
func (s *luaReserve) Jobs() []strategies.Job { return s.syncs.jobs(s.sync) }

// sync overwrites every tenant's count with the sum of its stored files. Between
// the sum and the SET, and for uploads that have not arrived yet, it is wrong,
// which is the record's own doing. The old value comes back with the SET only to
// tell whether anything changed.
func (s *luaReserve) sync(ctx context.Context) (changed bool, err error) {
	tenants, err := s.files.tenants(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range tenants {
		sum, err := s.files.stored(ctx, t)
		if err != nil {
			return changed, err
		}
		want := strconv.FormatInt(sum, 10)
		old, err := s.redis.SetArgs(ctx, s.keys.used(t.policy, t.subject), want, redis.SetArgs{Get: true}).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return changed, fmt.Errorf("overwriting what %s has used: %w", t.subject, err)
		}
		changed = changed || old != want
	}
	return changed, nil
}
