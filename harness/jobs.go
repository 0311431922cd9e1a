package harness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Job is one job of one instance. Its Run notes when rounds end and how, and
// turns a panic into an error.
type Job struct {
	strategies.Job
	Instance int

	clock quota.Clock

	mu sync.Mutex
	rounds
}

// rounds are how those of a job went.
type rounds struct {
	// since is the moment from which on work may be left: the start of the last successful
	// round, or of the first that failed before it, as what that had on its way was all that
	// the next one took; at first the beginning. missed is the start of the first round that
	// has failed since.
	since, missed time.Time
	longest       time.Duration
	failed        int64
	err           error
}

// jobsOf are the jobs that an instance runs: singletons belong to the first.
func jobsOf(strategy strategies.Strategy, instance int, clock quota.Clock) (out []*Job) {
	jobber, ok := strategy.(strategies.Jobber)
	if !ok {
		return nil
	}
	for _, job := range jobber.Jobs() {
		if job.Singleton && instance > 0 {
			continue
		}
		j := &Job{Job: job, Instance: instance, clock: clock}
		j.Run = func(ctx context.Context) (bool, error) { return j.round(ctx, job.Run) }
		out = append(out, j)
	}
	return out
}

// Begin notes the moment from which the first round is waited for.
func (j *Job) Begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.since = j.clock.Now()
	j.missed = time.Time{}
	j.longest = 0
}

func (j *Job) round(ctx context.Context, run func(context.Context) (bool, error)) (changed bool, err error) {
	began := j.clock.Now()
	changed, err = guard.Ask(ctx, 0, "the job "+j.Name, run)
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.missed.IsZero() {
		began = j.missed
	}
	if err != nil {
		j.failed++
		j.missed = began
		if j.err == nil {
			j.err = err
		}
		return changed, err
	}
	if j.Every > 0 && !j.since.IsZero() {
		j.longest = max(j.longest, j.clock.Now().Sub(j.since))
		j.since = began
		j.missed = time.Time{}
	}
	return changed, nil
}

// AchievedPeriod is the longest time from the start of a successful round of any periodic
// job, or from the beginning, to the end of the next one, or until now; 0 if none succeeded.
func (s *Session) AchievedPeriod() (duration time.Duration) {
	var open time.Duration
	for _, j := range s.Jobs {
		j.mu.Lock()
		duration = max(duration, j.longest)
		if j.Every > 0 && !j.since.IsZero() {
			open = max(open, j.clock.Now().Sub(j.since))
		}
		j.mu.Unlock()
	}
	if duration == 0 {
		return 0
	}
	return max(duration, open)
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

// CatchUp runs a round of every job that has work waiting, and reports whether any had. No job may be running.
func (s *Session) CatchUp(ctx context.Context) (again bool, err error) {
	for _, j := range s.Jobs {
		if j.Pending == nil || !j.Pending() {
			continue
		}
		if _, err := j.Run(ctx); err != nil {
			return false, fmt.Errorf("job %s: %w", j.Name, err)
		}
		again = true
	}
	return again, nil
}

// Settle runs all jobs until none changes anything any more. No job may be
// running. idle is false if ctx ended first.
func (s *Session) Settle(ctx context.Context) (idle bool) {
	for ctx.Err() == nil {
		changed := false
		for _, j := range s.Jobs {
			c, err := j.Run(ctx)
			changed = changed || c && err == nil
		}
		if !changed {
			return true
		}
	}
	return false
}
