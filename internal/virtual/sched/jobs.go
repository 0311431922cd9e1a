package sched

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/strategies"
)

// Jobs runs the background work of one instance. Its Wake is made before the
// instance is opened, its actors afterwards, when the jobs are known.
type Jobs struct {
	// Process that the jobs run in; nil for none.
	Process *Process

	scheduler *Scheduler
	label     string
	actors    map[string]*Actor
	early     map[string]bool   // woken before Start
	names     map[string]string // of actors, by those of their jobs
	begun     []*Actor
}

// NewJobs makes the jobs of an instance whose actors' names begin with label.
func (s *Scheduler) NewJobs(label string) *Jobs {
	return &Jobs{scheduler: s, label: label}
}

// Reset forgets the actors and what was woken: the instance is opened anew.
func (j *Jobs) Reset() {
	clear(j.actors)
	clear(j.early)
}

// JobState is what an actor knows of the job that it runs.
type JobState struct {
	// Rounds completed so far.
	Rounds int
	// Changed and Err are what the last round returned.
	Changed bool
	Err     error

	job      strategies.Job
	woken    bool
	prompted bool
	due      time.Time
}

// Every is the job's period, or 0 if only waking starts a round.
func (j *JobState) Every() time.Duration { return j.job.Every }

// Prompt makes the next round due at once, as if the job's period had ended now.
// The period goes on as it was.
func (j *JobState) Prompt() { j.prompted = true }

func (j *JobState) ready(now time.Time) bool {
	if j.prompted {
		return true
	}
	if j.woken && (j.job.Pending == nil || j.job.Pending()) {
		return true
	}
	return !j.due.IsZero() && !now.Before(j.due)
}

// Wake asks for a round of the named job as soon as it is stepped. It serves as
// [strategies.Env.Wake], and starts a periodic job's round on demand; the
// period goes on as it was.
func (j *Jobs) Wake(name string) {
	actor, ok := j.actors[name]
	if !ok {
		if j.early == nil {
			j.early = map[string]bool{}
		}
		j.early[name] = true
		return
	}
	if actor.frozen {
		j.scheduler.touched++
	}
	if j.scheduler.counts() {
		j.scheduler.woken = append(j.scheduler.woken, actor.ID)
	}
	actor.job.woken = true
	if queue := j.scheduler.queue; queue != nil && !actor.done && actor.op.Kind == Idle && actor.Ready() {
		queue.enter(queue.now(), actor, false)
	}
}

// Start makes an actor for each job, which idles until it is due or woken. Which
// instance runs the singletons is the caller's choice: pass only the jobs that
// this one shall run. The slice that it returns is valid until the next call.
func (j *Jobs) Start(jobs []strategies.Job) []*Actor {
	if j.actors == nil {
		j.actors = make(map[string]*Actor, len(jobs))
	}
	j.begun = j.begun[:0]
	for _, job := range jobs {
		jobState := JobState{job: job, woken: j.early[job.Name] || job.Pending != nil && job.Pending()}
		if job.Every > 0 {
			jobState.due = j.scheduler.Now().Add(job.Every)
		}
		actor := newActor(j.scheduler, j.name(job.Name), func(ctx context.Context) { runJob(ctx, From(ctx)) })
		actor.begins(jobState)
		actor.process = j.Process
		// It idles from the start: a job that is not due is not ready either.
		actor.op = Op{Kind: Idle, Until: jobState.due}
		j.scheduler.add(actor)
		j.actors[job.Name] = actor
		j.begun = append(j.begun, actor)
	}
	return j.begun
}

// name is that of the actor that runs a job.
func (j *Jobs) name(job string) string {
	if j.label == "" {
		return job
	}
	name, ok := j.names[job]
	if !ok {
		if j.names == nil {
			j.names = map[string]string{}
		}
		name = j.label + job
		j.names[job] = name
	}
	return name
}

// begins gives an actor a job, in the place of one that it had in an earlier run.
func (a *Actor) begins(jobState JobState) {
	a.job = a.past
	if a.job == nil {
		a.job = new(JobState)
	}
	*a.job = jobState
}

// runJob is the body of an actor with a job.
func runJob(ctx context.Context, actor *Actor) {
	jobState := actor.job
	for {
		jobState.woken = false
		jobState.prompted = false
		jobState.Changed, jobState.Err = jobState.job.Run(ctx)
		jobState.Rounds++
		// One wake may stand for more work than fits into a round. A round that
		// got nothing done is not repeated at once, or an outage would spin.
		if jobState.Changed && jobState.job.Pending != nil && jobState.job.Pending() {
			jobState.woken = true
		}
		// What fell due while the round took its time is not made up for: a job
		// slower than its period would never be idle.
		if late := actor.scheduler.Now().Sub(jobState.due); !jobState.due.IsZero() && late >= 0 {
			jobState.due = jobState.due.Add((late/jobState.job.Every + 1) * jobState.job.Every)
		}
		_ = actor.park(&Op{Kind: Idle, Until: jobState.due}) // an idle job cannot be failed
		if actor.dying {
			return
		}
	}
}
