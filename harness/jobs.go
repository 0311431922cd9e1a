package harness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/guard"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Job is one job of one instance. Its Run notes when rounds end and how, and
// turns a panic into an error.
type Job struct {
	strategies.Job
	Instance int

	clock quota.Clock

	mu      sync.Mutex
	last    time.Time // end of the last successful round, or the beginning
	longest time.Duration
	failed  int64
	err     error
}

// ownJobs are the jobs that an instance runs: singletons belong to the first.
func ownJobs(in strategies.Strategy, instance int) []strategies.Job {
	j, ok := in.(strategies.Jobber)
	if !ok {
		return nil
	}
	var out []strategies.Job
	for _, job := range j.Jobs() {
		if !job.Singleton || instance == 0 {
			out = append(out, job)
		}
	}
	return out
}

func jobsOf(in strategies.Strategy, instance int, clock quota.Clock) []*Job {
	var out []*Job
	for _, job := range ownJobs(in, instance) {
		j := &Job{Job: job, Instance: instance, clock: clock}
		run := job.Run
		j.Run = func(ctx context.Context) (bool, error) { return j.round(ctx, run) }
		out = append(out, j)
	}
	return out
}

// Begin notes the moment from which the first round is waited for.
func (j *Job) Begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last, j.longest = j.clock.Now(), 0
}

func (j *Job) round(ctx context.Context, run func(context.Context) (bool, error)) (changed bool, err error) {
	changed, err = guard.Ask(ctx, 0, "the job "+j.Name, run)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.failed++
		if j.err == nil {
			j.err = err
		}
		return changed, err
	}
	if now := j.clock.Now(); j.Every > 0 && !j.last.IsZero() {
		j.longest = max(j.longest, now.Sub(j.last))
		j.last = now
	}
	return changed, nil
}

// AchievedPeriod is the longest time between two successful rounds of any
// periodic job, or from the beginning to its first; 0 if none succeeded.
func (s *Session) AchievedPeriod() (d time.Duration) {
	for _, j := range s.Jobs {
		j.mu.Lock()
		d = max(d, j.longest)
		j.mu.Unlock()
	}
	return d
}

// FailedRounds is how many rounds of jobs ended in an error, and the first one.
func (s *Session) FailedRounds() (n int64, first error) {
	for _, j := range s.Jobs {
		j.mu.Lock()
		n += j.failed
		if first == nil {
			first = j.err
		}
		j.mu.Unlock()
	}
	return n, first
}

// CatchUp runs every job that has work waiting, until none has. No job may be
// running.
func (s *Session) CatchUp(ctx context.Context) error {
	for again := true; again; {
		again = false
		for _, j := range s.Jobs {
			if j.Pending == nil || !j.Pending() {
				continue
			}
			if _, err := j.Run(ctx); err != nil {
				return fmt.Errorf("job %s: %w", j.Name, err)
			}
			again = true
		}
	}
	return nil
}

// Settle runs all jobs until none changes anything any more. No job may be
// running. any is false if there are none; idle, where ctx ended first.
func (s *Session) Settle(ctx context.Context) (any, idle bool) {
	for ctx.Err() == nil {
		changed := false
		for _, j := range s.Jobs {
			c, err := j.Run(ctx)
			changed = changed || c && err == nil
		}
		if !changed {
			return len(s.Jobs) > 0, true
		}
	}
	return len(s.Jobs) > 0, false
}
