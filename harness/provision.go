package harness

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Grants are the subjects of a stream as they are at the start.
func Grants(stream workloads.Stream, policy *quota.Policy, subjects int) []strategies.Grant {
	grants := make([]strategies.Grant, subjects)
	for i := range grants {
		grants[i] = strategies.Grant{
			Subject: quota.Subject(stream.Name(uint32(i))), Limit: policy.Limit, Used: workloads.Initial(stream, uint32(i)),
		}
	}
	return grants
}

// Provision sets subjects up, through each of the given instances, and fills in
// what they have used: by the strategy's own Provision if it has one, and
// otherwise by requests of costs that the policy knows. Afterwards Used of each
// grant is what the subject has used then, which is less than was asked for if
// the strategy rejected some of it.
func (s *Session) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant,
	instances ...int) error {
	if len(grants) == 0 {
		return nil
	}
	for n, i := range instances {
		if provisioner, ok := s.Instances[i].(strategies.Provisioner); ok {
			// As long as a call for each subject may take, if a thousand were made at a time.
			limit := guard.Once(s.Deadline) * time.Duration(1+len(grants)/1000)
			_, err := guard.Ask(ctx, limit, "setting subjects up", func(ctx context.Context) (any, error) {
				return nil, provisioner.Provision(ctx, policy, grants)
			})
			if err != nil {
				return fmt.Errorf("provision %d subjects: %w", len(grants), err)
			}
			continue
		}
		if err := s.fillAll(ctx, s.Instances[i], policy, grants, bounds.FillID+uint64(n*len(grants))<<fillBits); err != nil {
			return err
		}
	}
	return nil
}

// fillAll fills one subject after the other, or as many at a time as the session has
// fillers.
func (s *Session) fillAll(ctx context.Context, strategy strategies.Strategy, policy *quota.Policy,
	grants []strategies.Grant, id uint64) error {
	var group errgroup.Group
	group.SetLimit(max(s.Fillers, 1))
	var all int64
	for k := range grants {
		all += grants[k].Used
	}
	var done atomic.Int64
	filled := func(units int64) {
		if n := done.Add(units); s.Filling != nil {
			s.Filling(float64(n) / float64(all))
		}
	}
	for k := range grants {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, group.Wait())
		}
		fill := func() error { return s.fill(ctx, strategy, policy, &grants[k], id+uint64(k)<<fillBits, filled) }
		switch {
		case grants[k].Used == 0:
		case s.Fillers > 1:
			group.Go(fill)
		default:
			if err := fill(); err != nil {
				return err
			}
		}
	}
	return group.Wait()
}

// fillBits leaves room for the requests that fill one subject.
const fillBits = 20

// fillRequests is how many requests fill a subject, if the strategy serves larger ones than the policy knows.
const fillRequests = 1 << 12

// fill takes the units that a subject starts with, by requests of the largest
// cost that the policy knows and the strategy serves, and one for the rest. If
// that would take too many requests, they are of a multiple of that, if such ones are
// served. If one of those is rejected, smaller ones take the room that is left, so that as much is
// used in the end as without them. Requests of one subject come one after the
// other: a strategy that counts wrongly under contention must begin with a right count.
func (s *Session) fill(ctx context.Context, strategy strategies.Strategy, policy *quota.Policy, grant *strategies.Grant,
	id uint64,
	filled func(int64)) error {
	usual, times, err := s.fillCost(policy, grant.Used)
	if err != nil {
		return fmt.Errorf("fill %s: %w", grant.Subject, err)
	}
	left := grant.Used
	for ; left > 0; id++ {
		units := min(left, usual*times)
		if !s.Selection.ServesUnits(policy, units) {
			units = 1 // a rest that is no cost of its own
		}
		request := quota.Request{ID: id, Subject: grant.Subject, Policy: policy, Units: units}
		decision, err := guard.Ask(ctx, s.Deadline, "filling a subject", func(ctx context.Context) (quota.Decision, error) {
			return strategy.Take(ctx, request)
		})
		if err == nil {
			units, err = decision.Units(units)
		}
		switch {
		case err == nil:
		case times > 1 && grant.Used/usual>>fillBits == 0:
			times = 1 // it may serve less than it declares
			continue
		default:
			return fmt.Errorf("fill %s: %w", grant.Subject, err)
		}
		left -= units
		filled(units)
		if !decision.Admitted {
			times = min(times, left/usual) / 2
			if times == 0 {
				break
			}
		}
	}
	if left > 0 {
		filled(left) // as far as it goes
	}
	grant.Used -= left
	return nil
}

// fillCost is how much each request takes that fills a subject to that many units: so many times the usual cost.
func (s *Session) fillCost(policy *quota.Policy, used int64) (usual, times int64, err error) {
	served := func(units int64) bool { return s.Selection.ServesUnits(policy, units) }
	usual = 1
	for _, c := range policy.Costs {
		if c > usual && served(c) {
			usual = c
		}
	}
	// What a rejected request leaves in a counter of attempts depends on its size.
	times = used/usual/fillRequests + 1
	if times > 1 && s.Selection.Counts != quota.CountsAttempts && served(usual*times) {
		return usual, times, nil
	}
	if used/usual>>fillBits > 0 {
		return 0, 0, fmt.Errorf("%d units would take more than a million requests, and the strategy serves none of %d "+
			"units: fill less, or give subjects a smaller limit", used, usual*times)
	}
	return usual, 1, nil
}
