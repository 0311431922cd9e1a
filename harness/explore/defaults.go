package explore

import (
	"fmt"
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

// defaultScripts has one client give its units back where that is what the
// policy is about. The race of the racy control is between takes, and no refund is
// put in its way.
func defaultScripts(m *strategies.Meta, p *quota.Policy) []Script {
	take := Script{{Kind: Take, Units: 1}}
	if m.GivesBack && m.Control != strategies.ControlRacy && p.Window.Kind == quota.Standing {
		return []Script{{{Kind: Take, Units: 1}, {Kind: Refund}}, take}
	}
	return []Script{take}
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
