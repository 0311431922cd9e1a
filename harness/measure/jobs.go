package measure

import (
	"context"
	"sync"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
)

// jobRunner runs the background work of a run's instances on the wall clock. A
// job never overlaps with itself.
type jobRunner struct {
	jobs     []*runningJob
	timebase *timebase
	times    map[string]*roundTimes // by the job's name
	running  sync.WaitGroup
	cancel   context.CancelFunc
	// cut ends the rounds under way.
	cut context.CancelFunc
}

type runningJob struct {
	*harness.Job
	wake     chan struct{}
	timebase *timebase
	times    *roundTimes
}

func newJobRunner(tb *timebase) *jobRunner {
	return &jobRunner{timebase: tb, times: map[string]*roundTimes{}}
}

// waker returns what an instance calls to wake its own jobs. It may be called
// before the jobs are added.
func (r *jobRunner) waker(instance int) func(name string) {
	return func(name string) {
		for _, j := range r.jobs {
			if j.Instance == instance && j.Name == name {
				select {
				case j.wake <- struct{}{}:
				default: // a round is due already
				}
			}
		}
	}
}

func (r *jobRunner) add(jobs []*harness.Job) {
	for _, j := range jobs {
		if r.times[j.Name] == nil {
			r.times[j.Name] = &roundTimes{}
		}
		r.jobs = append(r.jobs, &runningJob{Job: j, wake: make(chan struct{}, 1), timebase: r.timebase,
			times: r.times[j.Name]})
	}
}

// start runs every job when it is due, until stop.
func (r *jobRunner) start(ctx context.Context) {
	// A round is finished even when the run ends meanwhile: what it had taken from its
	// queue would be lost otherwise.
	rounds, cut := context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(ctx)
	r.cancel = cancel
	r.cut = cut
	for _, j := range r.jobs {
		j.Begin()
		r.running.Go(func() { j.loop(ctx, rounds) })
	}
}

func (j *runningJob) loop(ctx, rounds context.Context) {
	var tick <-chan time.Time
	if j.Every > 0 {
		ticker := time.NewTicker(j.Every)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-j.wake:
		}
		for {
			from := j.timebase.nano()
			changed, err := j.Run(rounds)
			j.times.add(from, j.timebase.nano())
			if err != nil || !changed || ctx.Err() != nil || j.Pending == nil || !j.Pending() {
				break
			}
		}
	}
}

// stop ends the schedule and waits for rounds that are under way, each of which may
// take that long before it is cancelled.
func (r *jobRunner) stop(limit time.Duration) error {
	if r.cancel == nil {
		return nil
	}
	r.cancel()
	r.cancel = nil
	defer r.cut()
	_, err := guard.Within(context.Background(), limit, guard.Grace(limit), "a job",
		func(ctx context.Context) (any, error) {
			defer context.AfterFunc(ctx, r.cut)()
			r.running.Wait()
			return nil, nil
		})
	return err
}
