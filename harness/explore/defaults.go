package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// example is a policy for any strategy, in the first of these kinds that it serves.
var (
	example = quota.Policy{
		Name: "10-requests-per-fixed-1m", Limit: 10, Unit: "requests", Window: quota.Window{Kind: quota.Fixed, Length: time.Minute},
	}
	exampleKinds = []quota.Kind{
		quota.Fixed, quota.Rolling, quota.FirstRequest, quota.Bucket,
		quota.CalendarHour, quota.CalendarDay, quota.CalendarMonth, quota.Standing,
	}
)

// ExamplePolicy is a policy that the strategy serves, of ten requests, in a minute if its
// kind has a length. The error says why it serves none of its kinds.
func ExamplePolicy(m *strategies.Meta) (quota.Policy, error) {
	var why error
	for _, kind := range exampleKinds {
		p := example.As(kind)
		err := m.ServesPolicy(&p)
		if err == nil {
			return p, nil
		}
		if why == nil || slices.Contains(m.Kinds, kind) {
			why = err
		}
	}
	return quota.Policy{}, why
}

// ownPolicy is a policy that the strategy's own record names, or the first registered one that
// it serves, or an example. The race of the racy control is one of requests, whatever its record counts.
func ownPolicy(m *strategies.Meta) (quota.Policy, error) {
	var first *quota.Policy
	for _, p := range quota.Policies() {
		if m.ServesPolicy(&p) != nil {
			continue
		}
		own := p.Source != "" && strings.HasPrefix(m.Source, p.Source)
		if m.Control == strategies.ControlRacy {
			own = p.Unit == example.Unit
		}
		if own {
			return p, nil
		}
		if first == nil {
			first = &p
		}
	}
	if first == nil {
		p, err := ExamplePolicy(m)
		if err != nil {
			like := example
			if len(m.Kinds) > 0 {
				like = example.As(m.Kinds[0])
			}
			err = fmt.Errorf("strategy %s serves none of the usual policies (%w): give one that it serves, with other figures than in "+
				"quotabench explore %s --policy %q", m.Name, err, m.Name, like.Text())
		}
		return p, err
	}
	return *first, nil
}

// defaultScripts are what clients do under a policy, of which limit is searched, 0 for
// whatever the scripts ask for. The first client takes one unit, and gives it back if
// that is what the policy is about. The others take two if the policy's requests differ
// in what they cost. The race of the racy control is between takes of one unit, and
// nothing is put in its way.
func defaultScripts(m *strategies.Meta, p *quota.Policy, limit int64) []Script {
	first, others := Script{{Kind: Take, Units: 1}}, Script{{Kind: Take, Units: 1}}
	if m.Control == strategies.ControlRacy {
		return []Script{others}
	}
	if m.GivesBack && p.Window.Kind == quota.Standing {
		first = append(first, Action{Kind: Refund})
	}
	if len(p.Costs) > 0 && slices.Min(p.Costs) < slices.Max(p.Costs) && limit != 1 && m.ServesUnits(p, 2) {
		others[0].Units = 2
	}
	if slices.Equal(first, others) {
		return []Script{others}
	}
	return []Script{first, others}
}

// roomForAllButOne is the limit at which the last of the takes does not fit
// next to the units that are in use already.
func (c *Config) roomForAllButOne() int64 {
	var asked, least int64
	for i := range c.Clients {
		for _, a := range c.setup().Script(i) {
			if a.Kind != Take {
				continue
			}
			asked += a.Units
			if least == 0 || a.Units < least {
				least = a.Units
			}
		}
	}
	return c.Used + max(asked-least, least, 1)
}
