package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// host is what a runner gives the instances of a session to live in.
type host interface {
	// Furnish fills in what depends on the runner: the clock, the clients of the
	// stores or the model, the prefix, the region and Wake. Everything else is set.
	Furnish(ctx context.Context, env *strategies.Env) error
	// Adopt takes over an instance's jobs once it is open.
	Adopt(instance int, jobs []*Job) error
}

// Session is one strategy with its open instances in one run.
type Session struct {
	Plan      *Plan
	Selection strategies.Selection
	Instances []strategies.Strategy
	// Jobs of all instances, a singleton's once.
	Jobs []*Job
	// Fillers is how many subjects are filled at a time; 0 and 1 fill them one after the
	// other.
	Fillers int
	// Filling is told which share of all units is filled in, by each of the fillers; nil for nobody.
	Filling func(share float64)
	// Deadline of a call of the strategy, after which its context is cancelled. A call that does
	// not return within half of it after that is given up. One that is made once has a second at
	// least. 0 waits forever, on the caller's goroutine, which a simulation knows.
	Deadline time.Duration

	env           strategies.Env // what all instances have
	round, opened int
	former        []strategies.Strategy // that others have taken the place of
}

// Open opens that many instances, numbered from 0, of a session that has its plan,
// selection and deadline. round, counted from 1, tells their random sources apart from those of
// other rounds. If it fails, instances that are open already are closed again.
func (s *Session) Open(ctx context.Context, instances, round int, host host) error {
	s.round = round
	s.env = strategies.Env{Shared: new(strategies.Shared), Instances: instances, Options: s.Selection.Options}
	for i := range instances {
		err := s.Reopen(ctx, host, i)
		if err == nil {
			continue
		}
		if hung := new(guard.HungError); errors.As(err, &hung) { // the others may not answer, either
			s.Deadline = min(s.Deadline, guard.LeastOnce)
		}
		closed := s.Close(context.WithoutCancel(ctx))
		return errors.Join(fmt.Errorf("open %s: %w", s.Selection, err), closed)
	}
	return nil
}

// Reopen opens an instance, anew if it is open: without what it knew, as after a crash. How the
// rounds of its jobs went is known further on.
func (s *Session) Reopen(ctx context.Context, host host, instance int) error {
	env, err := s.furnish(ctx, host, instance)
	if err != nil {
		return err
	}
	strategy, err := guard.Ask(ctx, guard.Once(s.Deadline), "being opened",
		func(ctx context.Context) (strategies.Strategy, error) {
			return s.Selection.Open(ctx, *env)
		})
	if err != nil {
		return err
	}
	if instance < len(s.Instances) {
		s.former = append(s.former, s.Instances[instance])
		s.Instances[instance] = strategy
	} else {
		s.Instances = append(s.Instances, strategy)
	}
	jobs := jobsOf(strategy, instance, cmp.Or(env.TrueClock, env.Clock))
	elsewhere := func(job *Job) bool { return job.Singleton && !s.Plan.First() }
	jobs = slices.DeleteFunc(jobs, elsewhere)
	if err := host.Adopt(instance, jobs); err != nil {
		return err
	}
	s.adopt(instance, jobs)
	return nil
}

// furnish is what an instance lives in.
func (s *Session) furnish(ctx context.Context, host host, instance int) (*strategies.Env, error) {
	env := s.env
	env.Instance = instance
	number, processes := s.Plan.Place()
	purposes := []uint64{uint64(s.round), uint64(s.opened)}
	if s.Plan.Peers != nil {
		purposes = append(purposes, uint64(number+1))
	}
	env.Rand = seed.Rand(s.Plan.Seed, seed.Instance, purposes...)
	s.opened++
	if err := host.Furnish(ctx, &env); err != nil {
		return nil, err
	}
	env.Instance = instance + number*env.Instances // instances of all processes have numbers of their own
	env.Instances *= processes
	return &env, nil
}

// adopt adds an instance's jobs, or puts them in the place of its former ones.
func (s *Session) adopt(instance int, jobs []*Job) {
	for _, job := range jobs {
		former := slices.IndexFunc(s.Jobs, func(other *Job) bool {
			return other.Instance == instance && other.Name == job.Name
		})
		if former < 0 {
			s.Jobs = append(s.Jobs, job)
			continue
		}
		job.rounds = s.Jobs[former].rounds
		s.Jobs[former] = job
	}
}

// Close closes the instances. Clients and stores belong to the host.
func (s *Session) Close(ctx context.Context) error {
	var errs []error
	for _, strategy := range slices.Concat(s.Instances, s.former) {
		_, err := guard.Ask(ctx, s.Deadline, "being closed", func(ctx context.Context) (any, error) {
			return nil, strategy.Close(ctx)
		})
		errs = append(errs, err)
	}
	s.Instances = nil
	s.former = nil
	return errors.Join(errs...)
}

// Meter is what the strategy's own figures are now, over all instances, in the
// order in which the strategy gives them; nil if it has none.
func (s *Session) Meter() []results.Measure {
	var out []results.Measure
	for number, strategy := range slices.Concat(s.Instances, s.former) {
		meter, ok := strategy.(strategies.Meter)
		if !ok {
			continue
		}
		former := number >= len(s.Instances)
		for _, measure := range meter.Measures() {
			if former && measure.Kind == strategies.MeasureLevel {
				continue // its memory is gone
			}
			out = addMeasure(out, measure)
		}
	}
	return out
}

// addMeasure adds an instance's figure to those of other instances.
func addMeasure(all []results.Measure, measure strategies.Measure) []results.Measure {
	i := slices.IndexFunc(all, func(other results.Measure) bool { return other.Name == measure.Name })
	switch {
	case i < 0:
		return append(all, results.Measure{Name: measure.Name, Unit: measure.Unit, Kind: string(measure.Kind),
			Value: measure.Value, Metric: string(measure.Metric)})
	case measure.Kind == strategies.MeasureMost:
		all[i].Value = max(all[i].Value, measure.Value)
	default:
		all[i].Value += measure.Value
	}
	return all
}

// MeterSince takes what totals were before a pass off what they are after it.
func MeterSince(before, after []results.Measure) []results.Measure {
	out := slices.Clone(after)
	for i := range out {
		if out[i].Kind != string(strategies.MeasureTotal) {
			continue
		}
		if j := slices.IndexFunc(before, func(measure results.Measure) bool { return measure.Name == out[i].Name }); j >= 0 {
			out[i].Value -= before[j].Value
		}
	}
	return out
}
