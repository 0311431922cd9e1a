package measure

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/strategies"
)

// jobRunner runs the background work of a run's instances on the wall clock. A
// job never overlaps with itself; a singleton runs on the first instance only.
type jobRunner struct {
	jobs   []*runningJob
	wg     sync.WaitGroup
	cancel context.CancelFunc
	failed atomic.Int64
	now    func() int64
}

type runningJob struct {
	strategies.Job
	wake chan struct{}
	// longest is the longest time between two rounds of a periodic job, or from
	// the start to its first; 0 while there was none. Read it after stop.
	longest time.Duration
}

// settleLimit bounds how long jobs may take to become idle.
const settleLimit = 30 * time.Second

func newJobRunner(now func() int64) *jobRunner { return &jobRunner{now: now} }

// waker returns what an instance calls to wake its own jobs. It may be called
// before the jobs are added.
func (r *jobRunner) waker() (wake func(string), add func(strategies.Strategy, int)) {
	var own []*runningJob
	wake = func(name string) {
		for _, j := range own {
			if j.Name == name {
				select {
				case j.wake <- struct{}{}:
				default: // a round is due already
				}
			}
		}
	}
	add = func(s strategies.Strategy, instance int) {
		jobber, ok := s.(strategies.Jobber)
		if !ok {
			return
		}
		for _, job := range jobber.Jobs() {
			if job.Singleton && instance > 0 {
				continue
			}
			j := &runningJob{Job: job, wake: make(chan struct{}, 1)}
			own = append(own, j)
			r.jobs = append(r.jobs, j)
		}
	}
	return wake, add
}

// start runs every job when it is due, until stop.
func (r *jobRunner) start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(ctx)
	for _, j := range r.jobs {
		r.wg.Go(func() { r.loop(ctx, j) })
	}
}

func (r *jobRunner) loop(ctx context.Context, j *runningJob) {
	last := r.now()
	var tick <-chan time.Time
	if j.Every > 0 {
		t := time.NewTicker(j.Every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-j.wake:
		}
		for {
			// A round is finished even when the run ends meanwhile: what it had
			// taken from its queue would be lost otherwise.
			changed, err := j.guarded(context.WithoutCancel(ctx))
			if err != nil {
				r.failed.Add(1)
			} else if now := r.now(); j.Every > 0 {
				j.longest = max(j.longest, time.Duration(now-last))
				last = now
			}
			if err != nil || !changed || ctx.Err() != nil || j.Pending == nil || !j.Pending() {
				break
			}
		}
	}
}

// guarded runs one round and turns a panic into an error.
func (j *runningJob) guarded(ctx context.Context) (changed bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("job %s: panic: %v", j.Name, v)
		}
	}()
	return j.Run(ctx)
}

// stop ends the schedule and waits for rounds that are under way.
func (r *jobRunner) stop() {
	if r.cancel != nil {
		r.cancel()
	}
	r.wg.Wait()
}

// achievedPeriod is the longest time between two rounds of any periodic job; 0
// where none came to run.
func (r *jobRunner) achievedPeriod() (d time.Duration) {
	for _, j := range r.jobs {
		d = max(d, j.longest)
	}
	return d
}

// catchUp runs, before the jobs are started, every job that has work waiting,
// until none has.
func (r *jobRunner) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for again := true; again; {
		again = false
		for _, j := range r.jobs {
			if j.Pending == nil || !j.Pending() {
				continue
			}
			if _, err := j.guarded(ctx); err != nil {
				return fmt.Errorf("job %s: %w", j.Name, err)
			}
			again = true
		}
	}
	return nil
}

// settle runs all jobs, stopped before, until none changes anything any more. It
// reports whether there were any, and whether they became idle in time.
func (r *jobRunner) settle(ctx context.Context) (any, idle bool) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for ctx.Err() == nil {
		changed := false
		for _, j := range r.jobs {
			c, err := j.guarded(ctx)
			if err != nil {
				r.failed.Add(1)
				continue
			}
			changed = changed || c
		}
		if !changed {
			return len(r.jobs) > 0, true
		}
	}
	return len(r.jobs) > 0, false
}
