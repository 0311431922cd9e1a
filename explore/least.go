package explore

import (
	"slices"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/quota"
)

// IsLeast reports whether a search is no larger than the least one that a claim needs: all schedules of
// two callers with one fault. It is for configurations that are complete; see [Config.Complete].
func (c *Config) IsLeast() bool {
	if slices.Contains(c.Faults, quota.FaultClock) && c.Ticks > 1 {
		return false
	}
	return c.Clients <= bounds.LeastClients && len(c.Faults) <= 1 && c.Times <= 1
}

// Least are the least searches of the same question: those with fewer callers, and with each fault alone.
func (c Config) Least() []Config {
	c.Clients = bounds.LeastClients
	c.Times = 1
	c.Ticks = 0
	c.Timeout = 0
	c.Scripts = c.Scripts[:min(len(c.Scripts), bounds.LeastClients)]
	if len(c.Faults) == 0 {
		return []Config{c}
	}
	var all []Config
	for _, fault := range c.Faults {
		one := c
		one.Faults = []quota.Fault{fault}
		if fault == quota.FaultClock {
			one.Ticks = 1
		}
		all = append(all, one)
	}
	return all
}
