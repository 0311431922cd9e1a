package group

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
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
func (s *Settings) PlanFor(all []strategies.Selection) (p harness.Plan, err error) {
	p = s.Config.Plan
	p.Strategies = all
	p.Archive = s.History
	if s.Route != "" {
		second, err := LookupPolicy(s.Route)
		if err != nil {
			return p, s.Wrong("route-policy", err)
		}
		p.Second = &second
		p.Routes = routes
	}
	p.Policy, err = LookupPolicy(s.Policy)
	if err != nil {
		return p, s.Wrong("policy", err)
	}
	if s.Considers() && p.Policy.Window.Kind == quota.Standing && !s.Given("workload") && s.Trace == "" {
		s.Workload = standingWorkload
	}
	p.Workload, p.Stream.Options, err = s.Chosen()
	if err != nil {
		return p, err
	}
	switch {
	case s.Given("limit"):
		p.Policy.Limit = s.Limit
	case p.Workload.Crosses && listed(p.Policy.Name): // an own policy says what it means
		p.Policy = strategies.ForCrossings(p.Policy)
	}
	p.Trouble, err = s.planned()
	if err != nil {
		return p, err
	}
	if !s.Given("policy") && !s.Considers() {
		s.fit(&p)
	}
	if err := p.CheckPolicy(); err != nil {
		return p, s.unfit(&p, err)
	}
	err = s.RunGates()
	if err != nil {
		return p, err
	}
	return p, s.CheckStores()
}

// standingWorkload is the workload for a limit on what is held at the same time: its callers give units back.
const standingWorkload = "uploads"

// listed reports whether a policy of that name is registered: then it was
// not written for this run.
func listed(name string) bool {
	return slices.ContainsFunc(quota.Policies(), func(p quota.Policy) bool { return p.Name == name })
}

// Measurement turns the settings into a measurement without stores. Afterwards the settings
// hold what was worked out, so printing them says what is in force.
func (s *Settings) Measurement() (c measure.Config, err error) {
	s.Expand()
	if err := s.ReadClients(); err != nil {
		return c, err
	}
	c = s.Config
	c.Plan, err = s.Plan()
	if err != nil {
		return c, err
	}
	s.look(&c)
	if err := c.Complete(); err != nil {
		return c, exit.With(exit.Usage, err)
	}
	info, err := s.Rehearse(&c.Plan)
	if err != nil {
		return c, err
	}
	if _, err := c.CheckReplay(info, measure.MaxDuration); err != nil {
		return c, exit.With(exit.Usage, err)
	}
	c.Load, err = s.Issued(c.Workload, info.Loop)
	if err != nil {
		return c, err
	}
	if err := c.Complete(); err != nil { // the load is known now
		return c, exit.With(exit.Usage, err)
	}
	s.Limit = c.Policy.Limit
	s.Workers = c.Workers
	s.Life = c.Life
	s.DecisionTimeout = c.DecisionTimeout
	if !s.Looking { // a duration that is given ends that
		s.Rounds = c.Rounds
		s.Duration = c.Duration
	}
	return c, nil
}

// Rehearse makes the workload's stream once, to find what is wrong with it or with its trace
// before anything is started.
func (s *Settings) Rehearse(p *harness.Plan) (workloads.Info, error) {
	_, info, err := p.NewStream(1)
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return info, s.unreadable(file)
	}
	return info, exit.With(exit.Usage, err)
}
