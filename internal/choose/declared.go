package choose

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// leave has a contender go that could not be tested.
func (x *contender) leave(reason, command string) {
	x.untested = &results.Untested{Strategy: x.sel.String(), Reason: format.OneLine(reason), Command: command}
}

// declares is evidence of the kind.
func declares(text string, args ...any) results.Evidence {
	return results.Evidence{Kind: results.EvidenceDeclared, Text: fmt.Sprintf(text, args...)}
}

// declared has those leave that say of themselves that they cannot serve the policy, or
// that need what is not there.
func (c *chooser) declared(_ context.Context, in []*contender) error {
	for _, x := range in {
		m := x.sel.Meta
		kind := c.cfg.Policy.Window.Kind
		if !slices.Contains(m.Kinds, kind) {
			x.ruleOut(declares("serves no policy whose window is %s", kind), "")
			continue
		}
		if err := m.ServesPolicy(&c.cfg.Policy); err != nil {
			x.ruleOut(declares("%v", err), "")
			continue
		}
		switch {
		case c.cfg.Settles && !m.GivesBack:
			x.ruleOut(declares("cannot take units back, which failed and deleted work asks for"), "")
		case m.Reset == strategies.ResetsNever && kind != quota.Standing:
			x.ruleOut(declares("has no windows: what is used up is not given again when a window ends"), "")
		default:
			c.present(x)
		}
	}
	return nil
}

// present has a contender leave whose client or whose stores are not there.
func (c *chooser) present(x *contender) {
	if err := x.sel.BuiltIn(); err != nil {
		x.leave(err.Error(), "")
		return
	}
	for _, need := range x.sel.Needs {
		_, postgres := c.cfg.Stores.Get(string(strategies.NeedPostgres))
		_, here := c.cfg.Stores.Get(string(need))
		if here || need == strategies.NeedSource || need == strategies.NeedReplica && !postgres {
			continue // a database of record has a model, and a model has a replica
		}
		spec := "URL"
		if d, err := stores.DriverOf(string(need)); err == nil && slices.Contains(d.Words(), "process") {
			spec = "process"
		}
		x.leave(fmt.Sprintf("needs the store %s, which is not there", need), fmt.Sprintf("quotabench choose --store %s=%s", need, spec))
		return
	}
}

// promises has those leave that declare less than is asked for. They have come through
// all stages: a bound that no stage has reached is still all that they promise.
func (c *chooser) promises(_ context.Context, in []*contender) error {
	for _, x := range in {
		bound, formula, promised := c.bound(x)
		switch {
		case !promised && c.cfg.Outage.holds() && len(x.sel.RedisNeeds()) > 0:
			x.ruleOut(declares("declares no bound on its leak that holds while Redis is away"), "")
		case !promised:
			x.ruleOut(declares("declares no bound on its leak"), "")
		case bound > c.cfg.TolerateLeak:
			x.ruleOut(declares("declares no better bound than %s, which is up to %s over the limit here", formula,
				format.Units(bound, c.cfg.Policy.Unit)), "")
		}
	}
	return nil
}

// bound is the strictest of the declared bounds on the leak, in units, of those that
// hold under the faults that the question is about.
func (c *chooser) bound(x *contender) (bound int64, formula string, promised bool) {
	var asked []quota.Fault
	if c.cfg.Outage.holds() && len(x.sel.RedisNeeds()) > 0 {
		asked = append(asked, quota.FaultOutage)
	}
	bound = math.MaxInt64
	for _, clause := range x.sel.Guarantee {
		if clause.Property != quota.PropertyLeak || !clause.Applies(c.cfg.Policy.Window.Kind) {
			continue
		}
		if slices.ContainsFunc(asked, func(f quota.Fault) bool { return !slices.Contains(clause.Tolerates, f) }) {
			continue
		}
		b := clause.Bound(quota.Params{
			Limit: c.cfg.Policy.Limit, MaxCost: c.cfg.largest(), InFlight: workers, Instances: int64(c.cfg.total()),
			Offered: 2 * c.cfg.Policy.Limit, Policy: &c.cfg.Policy, Options: x.sel.Options,
		})
		if !promised || b < bound {
			bound, formula, promised = b, clause.Formula, true
		}
	}
	return bound, formula, promised
}
