package results

import "slices"

// perDecision are the figures of a cost that are means over decisions.
var perDecision = []func(*Cost) *float64{
	func(c *Cost) *float64 { return &c.Commands }, func(c *Cost) *float64 { return &c.RoundTrips },
	func(c *Cost) *float64 { return &c.Bytes }, func(c *Cost) *float64 { return &c.SQL },
	func(c *Cost) *float64 { return &c.ModelSQL }, func(c *Cost) *float64 { return &c.Allocs },
	func(c *Cost) *float64 { return &c.ClientCPU }, func(c *Cost) *float64 { return &c.RedisCPU },
	func(c *Cost) *float64 { return &c.PostgresCPU }, func(c *Cost) *float64 { return &c.RunQueue },
}

// medianCost takes the median of every figure per decision, and the worst count
// of keys.
func medianCost(costs []Cost) Cost {
	var c Cost
	for _, f := range perDecision {
		values := make([]float64, len(costs))
		for i := range costs {
			values[i] = *f(&costs[i])
		}
		slices.Sort(values)
		*f(&c) = median(values)
	}
	for i := range costs {
		c.KeysAtEnd = max(c.KeysAtEnd, costs[i].KeysAtEnd)
		c.KeysWithoutTTL = max(c.KeysWithoutTTL, costs[i].KeysWithoutTTL)
	}
	return c
}
