// Package frequency says how often what a search found is met in a simulation at a stated rate
// of requests. A search says what can happen and a share of random schedules compares
// findings; neither says what a rate of requests makes of it.
package frequency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/internal/verdict"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

const (
	// DefaultRate is the requests per second of each subject if nothing else is said.
	DefaultRate = 100
	// MinRate is the least, a request in a quarter of an hour.
	MinRate = 0.001
	// MaxRate is the most: more requests than that are under way at once in one place.
	MaxRate = 100_000

	// requests are about as many as a simulation has.
	requests = 50_000
	// fewSubjects are how many ask at least if windows follow each other.
	fewSubjects = 10
	// windows are how many of the policy's follow each other, if they are short enough.
	windows = 3
	// patience is how long a strategy may do nothing that the simulation sees, by the wall
	// clock: then there is no figure.
	patience = 2 * time.Second
	// shortest is how long each subject asks at least, and asked how often.
	shortest = time.Second
	asked    = 100
)

// Simulate simulates the strategy, policy, limit, instances and clocks of a search, and notes in
// its findings how often their property breaks there: units that leak, and requests that are rejected
// although there was room. cfg is what was searched. Each subject is asked for at the rate, in
// requests per second, the times between two requests being random; networks are those of a
// simulation by default.
//
// Nothing is noted of findings that need more than requests and time that passes: other
// faults, refunds, units in use at the start; nor of strategies that cannot be simulated,
// of simulations whose figures do not count, and of leaks if no window was asked for
// more than its limit. A rate outside of [MinRate] and [MaxRate] is an error, except 0,
// at which nothing is simulated.
func Simulate(ctx context.Context, sel strategies.Selection, cfg explore.Config, rate float64,
	found *results.Search) error {
	findings := met(found)
	switch {
	case rate == 0:
		return nil
	case !(rate >= MinRate && rate <= MaxRate):
		return fmt.Errorf("%v requests per second: give %v to %d, or 0 for no simulation", rate, MinRate, MaxRate)
	case len(findings) == 0 || cfg.Used > 0:
		return nil
	}
	cfg, err := cfg.Complete(sel)
	if err != nil {
		return err
	}
	plan, subjects, err := load(sel, cfg, rate)
	if err != nil || plan.Workload == nil {
		return err
	}
	for instance, ahead := range cfg.Skew {
		plan.Trouble = append(plan.Trouble, trouble.ClockAhead(instance, ahead))
	}
	plan.Isolate = cfg.Isolate
	if plan.Complete() != nil || plan.CannotRun(sel) != nil {
		return nil // it is searched, and cannot be simulated
	}
	report, err := sim.Run(ctx, plan)
	switch {
	case ctx.Err() != nil || errors.As(err, new(*results.InvalidError)):
		return nil
	case err != nil:
		return err
	case len(report.Runs) != 1:
		return nil
	}
	simulated := simulation{rate: rate, subjects: subjects, run: &report.Runs[0]}
	for _, finding := range findings {
		finding.AtRate = simulated.atRate(finding.Property)
	}
	return nil
}

// simulation is one at a rate of requests.
type simulation struct {
	rate     float64
	subjects int64
	run      *results.Run
}

// atRate is how often a property broke; nil for leaks if no window was asked for more than its limit.
func (s *simulation) atRate(property explore.Property) *results.AtRate {
	atRate := &results.AtRate{Rate: s.rate, Subjects: s.subjects, Requests: s.run.Issued}
	switch property {
	case explore.Leak:
		if s.run.Leak.Trials == 0 {
			return nil
		}
		atRate.Units = s.run.Leak.Units
		atRate.Met = s.run.Leak.LeakedTrials
		atRate.Windows = s.run.Leak.Trials
	case explore.FalseReject:
		atRate.Units = s.run.FalseRejects.Units
		atRate.Met = s.run.FalseRejects.Count
	}
	return atRate
}

// met are the findings that a simulation can meet.
func met(found *results.Search) (out []*results.Finding) {
	for i := range found.Findings {
		finding := &found.Findings[i]
		injected := slices.ContainsFunc(finding.Faults, func(fault quota.Fault) bool { return fault != quota.FaultClock })
		if !injected && (finding.Property == explore.Leak || finding.Property == explore.FalseReject) {
			out = append(out, finding)
		}
	}
	return out
}

// load is the simulation's, and how many subjects it has. It has no workload if the
// scripts do more than take units.
func load(sel strategies.Selection, cfg explore.Config, rate float64) (plan sim.Config, subjects int64, err error) {
	var costs []int64
	for _, script := range cfg.Scripts {
		for _, action := range script {
			if action.Kind != explore.Take {
				return plan, 0, nil
			}
			costs = collect.Union(costs, action.Units)
		}
	}
	slices.Sort(costs)
	steady, err := workloads.Lookup("steady")
	if err != nil {
		return plan, 0, err
	}
	policy := cfg.Policy
	policy.Costs = costs
	subjects, long := shape(&policy, rate)
	plan = sim.Config{Every: -1, Parallel: 1, Plan: harness.Plan{
		Policy: policy, Strategies: []strategies.Selection{sel}, Seed: cfg.Seed, Instances: cfg.Instances,
		Traffic: harness.Traffic{Workload: steady, Load: harness.OpenAt(rate * float64(subjects)), Duration: long},
		Callers: harness.Callers{DecisionTimeout: min(patience, cfg.DecisionTimeout)},
	}}
	plan.Stream.Set("subjects", strconv.FormatInt(subjects, 10))
	plan.Stream.Set("popularity", "uniform")
	plan.Stream.Set("over-quota", "0")
	return plan, subjects, nil
}

// began is when the simulation begins.
var began = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// shape is how many subjects ask, and for how long: for some windows if a subject has
// so many requests, and each for the beginning of one if windows are longer.
func shape(policy *quota.Policy, rate float64) (subjects int64, long time.Duration) {
	seconds := func(n float64) time.Duration { return time.Duration(n / rate * float64(time.Second)) }
	long = max(shortest, seconds(asked))
	if all := windows * verdict.Length(policy, began); all > long && all <= seconds(requests/fewSubjects) {
		long = all
	}
	return max(1, int64(requests/(rate*long.Seconds()))), long
}
