package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// MaxPoints is the most combinations of values.
const MaxPoints = 400

// Rate is the name of the parameter that a [Search] looks for.
const Rate = "rate"

// Measure measures points, as [Points] makes them, in turns. What [measure.Measure] says of ctx and of errors
// holds here too.
func Measure(ctx context.Context, points []measure.Config) (*measure.Report, error) {
	reports, err := measure.Points(ctx, points)
	if err != nil {
		return nil, err
	}
	out := new(measure.Report)
	for _, report := range reports {
		add(out, report)
	}
	return out, nil
}

// Simulate simulates points, as [Simulations] makes them, one after the other. The report has no series and no traces.
// What [sim.Run] says of ctx and of errors holds here too.
func Simulate(ctx context.Context, points []sim.Config) (*sim.Report, error) {
	var out measure.Report
	for _, config := range points {
		if tell := config.SoFar; tell != nil {
			config.SoFar = func(runs []results.Run) { tell(slices.Concat(out.Runs, runs)) }
		}
		report, err := sim.Run(ctx, config)
		if report == nil {
			return nil, err
		}
		add(&out, &measure.Report{Runs: report.Runs, Info: report.Info, Interrupted: report.Interrupted})
		if report.Interrupted {
			break
		}
	}
	return &sim.Report{Runs: out.Runs, Info: out.Info, Interrupted: out.Interrupted}, results.Invalid(out.Runs)
}

// add adds the report of one point to that of all.
func add(r, more *measure.Report) {
	begun := func(report *measure.Report) bool { return len(report.Runs) > 0 || report.Info.Loop != "" }
	if begun(more) {
		notes := more.Info.Notes
		if begun(r) { // what is true of all points
			notes = slices.DeleteFunc(slices.Clone(notes), func(n string) bool { return !slices.Contains(r.Info.Notes, n) })
		}
		r.Info = more.Info
		r.Info.Notes = notes
	}
	r.Runs = append(r.Runs, more.Runs...)
	r.Interrupted = r.Interrupted || more.Interrupted
	r.OutOfTime = r.OutOfTime || more.OutOfTime
	r.Skipped = collect.Union(r.Skipped, more.Skipped...)
}

// Points are the configurations of all combinations of the parameters' values: base with
// these in place. One that makes no sense is an error that names it.
//
// A parameter is one of [Parameters], an option of the workload, or one of strategies:
// NAME for all that have it, STRATEGY.NAME for one of them.
func Points(base measure.Config, params []results.Swept) ([]measure.Config, error) {
	return points(base, params, runner{command: group.Run, fits: measured})
}

// Simulations are the simulations of all combinations of the parameters' values, as [Points] makes them. The pool,
// retries and client, which no simulation has, are no parameters.
func Simulations(base sim.Config, params []results.Swept) (out []sim.Config, err error) {
	base.Every = -1 // series of one strategy could not be told apart
	for _, swept := range params {
		if slices.Contains([]string{"pool", "retries"}, swept.Name) {
			return nil, fmt.Errorf("%s: a simulation opens no connections", swept.Name)
		}
	}
	fits := func(config *measure.Config) error {
		s := base
		s.Plan = config.Plan
		for _, swept := range params {
			if f := simulated[swept.Name]; f != nil {
				if err := f(&s, config.Point[swept.Name]); err != nil {
					return err
				}
			}
		}
		out = append(out, s)
		return out[len(out)-1].Complete()
	}
	_, err = points(measure.Config{Plan: base.Plan}, params, runner{group.Sim, simulated, fits})
	return out, err
}

type simulations map[string]func(config *sim.Config, text string) error

// simulated are the parameters that only a simulation has: by how much the clock of the first instance is ahead,
// the seed, and when virtual time begins.
var simulated = simulations{
	"clock": func(config *sim.Config, text string) error {
		event, err := trouble.Parse("instance/0:clock=" + text)
		if err != nil {
			return errors.New("give a time with its unit, e.g. -2s, or -2s@0.5 for a clock that steps")
		}
		config.Trouble = append(config.Trouble.Without(trouble.Skew), event)
		return nil
	},
	"seed": func(config *sim.Config, text string) (err error) {
		config.Seed, err = strconv.ParseUint(text, 10, 64)
		return err
	},
	"start": func(config *sim.Config, text string) (err error) {
		config.Start, err = time.Parse(time.RFC3339, text)
		return err
	},
}

// runner is what takes the points: a command, which may set some parameters apart, and completes each point.
type runner struct {
	command group.Command
	apart   simulations
	fits    func(*measure.Config) error
}

// points are the combinations, each of which must fit its runner.
func points(base measure.Config, params []results.Swept, by runner) ([]measure.Config, error) {
	combinations := []map[string]string{{}}
	for _, swept := range params {
		var next []map[string]string
		for _, c := range combinations {
			for _, text := range swept.Values {
				c := maps.Clone(c)
				c[swept.Name] = text
				next = append(next, c)
			}
		}
		combinations = next
		if len(next) > MaxPoints {
			return nil, fmt.Errorf("the values make more than %d combinations: give fewer", MaxPoints)
		}
	}
	var out []measure.Config
	runs := 0
	for _, values := range combinations {
		config := base
		config.Point = values
		where := " (at " + format.List(params, ", ", func(swept results.Swept) string {
			return swept.Name + " " + values[swept.Name]
		}) + ")"
		for _, swept := range params {
			if by.apart[swept.Name] != nil {
				continue
			}
			if err := set(by.command, &config, swept.Name, values[swept.Name]); err != nil {
				return nil, fmt.Errorf("%s %s: %w", swept.Name, values[swept.Name], err)
			}
		}
		if config.Workers < config.Instances {
			return nil, fmt.Errorf("%d instances have only %d workers%s: each needs one", config.Instances, config.Workers,
				where)
		}
		if err := by.fits(&config); err != nil {
			return nil, fmt.Errorf("%w%s", err, where)
		}
		runs += len(config.Strategies) * config.Rounds
		if runs > bounds.MaxRuns {
			return nil, fmt.Errorf("the sweep has more than %d runs, and a record holds no more: give fewer values, "+
				"rounds or strategies", bounds.MaxRuns)
		}
		out = append(out, config)
	}
	return out, nil
}

// measured completes a point, and reports what a measurement cannot have.
func measured(config *measure.Config) error {
	err := config.Complete()
	if err == nil {
		var info workloads.Info
		_, info, err = config.NewStream(1)
		if err == nil {
			_, err = config.CheckReplay(info, bounds.MaxDuration)
		}
	}
	return err
}
