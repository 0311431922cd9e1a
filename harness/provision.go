package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// The first request IDs of what is not measured, far above any measured one.
const (
	FillID   = 1 << 62
	WarmUpID = 1 << 61
	ProbeID  = 1 << 60
)

// Grants are the subjects of a stream as they are at the start.
func Grants(stream workloads.Stream, policy *quota.Policy, subjects int) []strategies.Grant {
	g := make([]strategies.Grant, subjects)
	for i := range g {
		g[i] = strategies.Grant{
			Subject: quota.Subject(stream.Name(uint32(i))), Limit: policy.Limit, Used: workloads.Initial(stream, uint32(i)),
		}
	}
	return g
}

// Provision sets subjects up, through each of the given instances, and fills in
// what they have used: by the strategy's own Provision where it has one, and
// otherwise by requests of costs that the policy knows. Afterwards Used of each
// grant is what the subject has used then, which is less than was asked for where
// the strategy rejected some of it.
func (s *Session) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant, instances ...int) error {
	if len(grants) == 0 {
		return nil
	}
	for n, i := range instances {
		if pv, ok := s.Instances[i].(strategies.Provisioner); ok {
			// As long as a call for each subject may take, if a thousand were made at a time.
			limit := Once(s.Deadline) * time.Duration(1+len(grants)/1000)
			_, err := ask(ctx, limit, "setting subjects up", func(ctx context.Context) (any, error) { return nil, pv.Provision(ctx, p, grants) })
			if err != nil {
				return fmt.Errorf("provision %d subjects: %w", len(grants), err)
			}
			continue
		}
		if err := s.fillAll(ctx, s.Instances[i], p, grants, FillID+uint64(n*len(grants))<<fillBits); err != nil {
			return err
		}
	}
	return nil
}

// fillAll fills one subject after the other, or as many at a time as the session has
// fillers.
func (s *Session) fillAll(ctx context.Context, in strategies.Strategy, p *quota.Policy, grants []strategies.Grant, id uint64) error {
	var g errgroup.Group
	g.SetLimit(max(s.Fillers, 1))
	for k := range grants {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, g.Wait())
		}
		fill := func() error { return s.fill(ctx, in, p, &grants[k], id+uint64(k)<<fillBits) }
		switch {
		case grants[k].Used == 0:
		case s.Fillers > 1:
			g.Go(fill)
		default:
			if err := fill(); err != nil {
				return err
			}
		}
	}
	return g.Wait()
}

// fillBits leaves room for the requests that fill one subject.
const fillBits = 20

// fill takes the units that a subject starts with, by requests of the largest
// cost that the policy knows and the strategy serves, and one for the rest. Where
// that would take too many requests, they are larger, if such ones are served.
func (s *Session) fill(ctx context.Context, in strategies.Strategy, p *quota.Policy, g *strategies.Grant, id uint64) error {
	each, err := s.fillCost(p, g.Used)
	if err != nil {
		return fmt.Errorf("fill %s: %w", g.Subject, err)
	}
	var used int64
	for left := g.Used; left > 0; id++ {
		units := min(left, each)
		if !s.Selection.ServesUnits(p, units) {
			units = 1 // a rest that is no cost of its own
		}
		r := quota.Request{ID: id, Subject: g.Subject, Policy: p, Units: units}
		d, err := ask(ctx, s.Deadline, "filling a subject", func(ctx context.Context) (quota.Decision, error) { return in.Take(ctx, r) })
		if err != nil {
			return fmt.Errorf("fill %s: %w", g.Subject, err)
		}
		if !d.Admitted {
			break
		}
		used, left = used+units, left-units
	}
	g.Used = used
	return nil
}

// fillCost is how much each request takes that fills a subject to that many units.
func (s *Session) fillCost(p *quota.Policy, used int64) (int64, error) {
	served := func(units int64) bool { return s.Selection.ServesUnits(p, units) }
	each := int64(1)
	for _, c := range p.Costs {
		if c > each && served(c) {
			each = c
		}
	}
	if least := used>>fillBits + 1; each < least {
		if !served(least) {
			return 0, fmt.Errorf("%d units would take more than a million requests, and the strategy serves none of %d units: fill less, or give subjects a smaller limit", used, least)
		}
		each = least
	}
	return each, nil
}

// Cost picks one of the policy's costs; 1 where it names none.
func Cost(p *quota.Policy, pick func([]int64) int64) int64 {
	if len(p.Costs) == 0 {
		return 1
	}
	return pick(p.Costs)
}
