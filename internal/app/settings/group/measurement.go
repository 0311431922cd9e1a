package group

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Plan is what a run and a simulation have in common. How requests are issued is not in it.
func (s *Settings) Plan() (harness.Plan, error) {
	all, err := s.Selections()
	if err != nil {
		return harness.Plan{}, err
	}
	return s.PlanFor(all)
}

// PlanFor is [Settings.Plan] for these strategies.
func (s *Settings) PlanFor(all []strategies.Selection) (plan harness.Plan, err error) {
	plan = s.Config.Plan
	plan.Strategies = all
	plan.Archive = s.History
	if s.Route != "" {
		second, err := LookupPolicy(s.Route)
		if err != nil {
			return plan, s.Wrong("route-policy", err)
		}
		plan.Second = &second
		plan.Routes = routes
	}
	err = s.policies(&plan)
	if err != nil {
		return plan, err
	}
	if s.Considers() && plan.Policy.Window.Kind == quota.Standing && !s.Given("workload") && s.Trace == "" {
		s.Workload = standingWorkload
	}
	plan.Workload, plan.Stream.Options, err = s.Chosen()
	if err != nil {
		return plan, err
	}
	switch {
	case s.Given("limit"):
		plan.Policy.Limit = s.Config.Policy.Limit
	case plan.Workload.Crosses && listed(plan.Policy.Name): // an own policy says what it means
		plan.Policy = bounds.ForCrossings(plan.Policy)
	}
	plan.Trouble, err = s.planned()
	if err != nil {
		return plan, err
	}
	if !s.Given("policy") && !s.Considers() {
		s.fit(&plan)
	}
	if err := plan.CheckPolicy(); err != nil {
		return plan, s.unfit(&plan, err)
	}
	if err := s.RunGates(); err != nil {
		return plan, err
	}
	// A file's is read by the rounds that --against starts, too.
	if s.Rank("tolerance") == settings.ByFlag && s.Against == "" {
		return plan, s.Wrong("tolerance", errors.New("it is about what --against finds: give --against PROGRAM too"))
	}
	if _, err := s.Comparison(); err != nil {
		return plan, err
	}
	return plan, s.CheckStores()
}

// standingWorkload is the workload for a limit on what is held at the same time: its callers give units back.
const standingWorkload = "uploads"

// listed reports whether a policy of that name is registered: then it was
// not written for this run.
func listed(name string) bool {
	return slices.ContainsFunc(quota.Policies(), func(policy quota.Policy) bool { return policy.Name == name })
}

// Measurement turns the settings into a measurement without stores. Afterwards the settings
// hold what was worked out, so printing them says what is in force.
func (s *Settings) Measurement() (config measure.Config, err error) {
	s.Expand()
	if err := s.ReadClients(); err != nil {
		return config, err
	}
	config = s.Config
	config.Plan, err = s.Plan()
	if err != nil {
		return config, err
	}
	s.look(&config)
	if err := config.Complete(); err != nil {
		return config, exit.With(exit.Usage, err)
	}
	info, err := s.Rehearse(&config.Plan)
	if err != nil {
		return config, err
	}
	if _, err := config.CheckReplay(info, bounds.MaxDuration); err != nil {
		return config, exit.With(exit.Usage, err)
	}
	config.Load, err = s.Issued(config.Workload, info.Loop)
	if err != nil {
		return config, err
	}
	if err := config.Complete(); err != nil { // the load is known now
		return config, exit.With(exit.Usage, err)
	}
	s.Adopt(&config, func(name string) bool { return name != "duration" || !s.Looking })
	if !s.Looking { // a number that is given ends that
		s.Rounds = config.Rounds
	}
	return config, nil
}

// Rehearse makes the workload's stream once, to find what is wrong with it or with its trace
// before anything is started.
func (s *Settings) Rehearse(plan *harness.Plan) (workloads.Info, error) {
	stream, info, err := plan.NewStream(1)
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return info, s.unreadable(file)
	}
	if err != nil {
		return info, exit.With(exit.Usage, err)
	}
	s.Introduction = introduction(stream, info)
	return info, nil
}
