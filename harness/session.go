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
func (s *Session) Open(ctx context.Context, instances, round int, h host) error {
	s.round = round
	s.env = strategies.Env{Shared: new(strategies.Shared), Instances: instances, Options: s.Selection.Options}
	for i := range instances {
		if err := s.Reopen(ctx, h, i); err != nil {
			if hung := new(guard.HungError); errors.As(err, &hung) { // the others may not answer, either
				s.Deadline = min(s.Deadline, guard.LeastOnce)
			}
			return errors.Join(fmt.Errorf("open %s: %w", s.Selection, err), s.Close(context.WithoutCancel(ctx)))
		}
	}
	return nil
}

// Reopen opens an instance, anew if it is open: without what it knew, as after a crash. How the
// rounds of its jobs went is known further on.
func (s *Session) Reopen(ctx context.Context, h host, instance int) error {
	env := s.env
	env.Instance, env.Rand = instance, seed.Rand(s.Plan.Seed, seed.Instance, uint64(s.round), uint64(s.opened))
	number, of := s.Plan.Place()
	if s.Plan.Peers != nil {
		env.Rand = seed.Rand(s.Plan.Seed, seed.Instance, uint64(s.round), uint64(s.opened), uint64(number+1))
	}
	s.opened++
	if err := h.Furnish(ctx, &env); err != nil {
		return err
	}
	env.Instance = instance + number*env.Instances // instances of all processes have numbers of their own
	env.Instances *= of
	strategy, err := guard.Ask(ctx, guard.Once(s.Deadline), "being opened",
		func(ctx context.Context) (strategies.Strategy, error) {
			return s.Selection.Open(ctx, env)
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
	jobs := slices.DeleteFunc(jobsOf(strategy, instance, cmp.Or(env.TrueClock, env.Clock)),
		func(j *Job) bool { return j.Singleton && !s.Plan.First() })
	if err := h.Adopt(instance, jobs); err != nil {
		return err
	}
	for _, j := range jobs {
		if i := slices.IndexFunc(s.Jobs, func(job *Job) bool {
			return job.Instance == instance && job.Name == j.Name
		}); i >= 0 {
			j.rounds, s.Jobs[i] = s.Jobs[i].rounds, j
		} else {
			s.Jobs = append(s.Jobs, j)
		}
	}
	return nil
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
	for n, strategy := range slices.Concat(s.Instances, s.former) {
		meter, ok := strategy.(strategies.Meter)
		if !ok {
			continue
		}
		for _, measure := range meter.Measures() {
			if n >= len(s.Instances) && measure.Kind == strategies.MeasureLevel {
				continue // its memory is gone
			}
			i := slices.IndexFunc(out, func(o results.Measure) bool { return o.Name == measure.Name })
			switch {
			case i < 0:
				out = append(out, results.Measure{Name: measure.Name, Unit: measure.Unit, Kind: string(measure.Kind),
					Value: measure.Value, Metric: string(measure.Metric)})
			case measure.Kind == strategies.MeasureMost:
				out[i].Value = max(out[i].Value, measure.Value)
			default:
				out[i].Value += measure.Value
			}
		}
	}
	return out
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
