package shortlist

import (
	"errors"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// inFlight is how many requests are under way at once where a declared bound depends on that.
const inFlight = 50

// declared has those leave that say of themselves that they cannot serve the policy.
func (s *Shortlist) declared() {
	policy := &s.question.Policy
	for _, contender := range s.all {
		why := results.Considered{Stage: codes.StageDeclaration}
		switch err := contender.ServesPolicy(policy); {
		case !slices.Contains(contender.Kinds, policy.Window.Kind):
			why.Cause = codes.OtherWindows
		case err != nil:
			why.Cause = codes.OtherPolicies
			why.Detail = unserved(err)
		case s.question.Second != nil && !contender.TwoQuotas:
			why.Cause = codes.OtherPolicies
			why.Detail = "it has one window, and the policy has two"
		case s.question.Second != nil && contender.ServesPolicy(s.question.Second) != nil:
			why.Cause = codes.OtherPolicies
			why.Detail = unserved(contender.ServesPolicy(s.question.Second))
		case s.question.GivesBack && !contender.GivesBack:
			why.Cause = codes.NeverGivesBack
		case contender.Reset == strategies.ResetsNever && policy.Window.Kind != quota.Standing:
			why.Cause = codes.NeverResets
		default:
			s.promises(contender)
			continue
		}
		contender.excluded(why)
	}
}

// unserved is why a strategy cannot serve the policy, which the reader knows.
func unserved(err error) string {
	if policy, ok := errors.AsType[*strategies.PolicyError](err); ok {
		return policy.Why
	}
	return err.Error()
}

// promises has a contender leave that declares nothing under a fault that it has to survive.
func (s *Shortlist) promises(c *contender) {
	for _, fault := range s.question.Survive {
		if fault == quota.FaultOutage && len(c.RedisNeeds()) == 0 {
			continue
		}
		_, declared := s.bound(c, []quota.Fault{fault})
		if !declared {
			c.excluded(results.Considered{Stage: codes.StageDeclaration, Cause: codes.NotPromised, Detail: string(fault)})
			return
		}
	}
}

// bound is the strictest bound on the leak that a contender declares under some faults, in units of one subject and
// window of the policy.
func (s *Shortlist) bound(c *contender, faults []quota.Fault) (units int64, declared bool) {
	policy := &s.question.Policy
	largest := int64(1)
	if len(policy.Costs) > 0 {
		largest = slices.Max(policy.Costs)
	}
	params := quota.Params{
		Limit: policy.Limit, MaxCost: largest, InFlight: inFlight, Instances: int64(s.question.Instances),
		Offered: 2 * policy.Limit, Policy: policy, Options: c.Options,
	}
	units = quota.Unbounded
	for _, clause := range c.Guarantee {
		if clause.Property != quota.PropertyLeak || !clause.Applies(policy.Window.Kind) || !tolerates(&clause, faults) {
			continue
		}
		declared = true
		units = min(units, clause.Bound(params))
	}
	return units, declared
}

// tolerates reports whether a clause holds under all faults.
func tolerates(clause *quota.Clause, faults []quota.Fault) bool {
	for _, fault := range faults {
		if !slices.Contains(clause.Tolerates, fault) {
			return false
		}
	}
	return true
}

// withinBound reports whether a leak under some faults is one that a contender declares, and small enough that the
// strategy still enforces the policy.
func (s *Shortlist) withinBound(c *contender, faults []quota.Fault) bool {
	units, declared := s.bound(c, faults)
	return declared && float64(units) <= ranking.MaxBound*float64(s.question.Policy.Limit)
}
