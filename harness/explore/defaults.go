package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// ownPolicy is a policy that the strategy's own record names, or the first that
// it serves.
func ownPolicy(m *strategies.Meta) (quota.Policy, error) {
	var first *quota.Policy
	for _, p := range quota.Policies() {
		if m.ServesPolicy(&p) != nil {
			continue
		}
		if p.Source != "" && strings.HasPrefix(m.Source, p.Source) {
			return p, nil
		}
		if first == nil {
			first = &p
		}
	}
	if first == nil {
		return quota.Policy{}, fmt.Errorf("strategy %s serves none of the policies: give one", m.Name)
	}
	return *first, nil
}

// defaultScripts are what clients do under a policy, of which limit is searched, 0 for
// whatever the scripts ask for. The first client takes one unit, and gives it back where
// that is what the policy is about. The others take two where the policy's requests differ
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
// beside the units that are in use already.
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
