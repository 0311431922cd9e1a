// Package likely has the policies to try if nobody chose one.
package likely

import (
	"slices"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Policies are base, what it is in each kind that the strategies serve, the first of a strategy's kinds first, and those
// that are registered.
func Policies(base quota.Policy, all []strategies.Selection) []quota.Policy {
	out := []quota.Policy{base}
	for _, sel := range all {
		for _, kind := range sel.Kinds {
			p := base.As(kind)
			known := slices.ContainsFunc(out, func(x quota.Policy) bool { return x.Window.Kind == kind })
			if !known && p.Validate() == nil {
				out = append(out, p)
			}
		}
	}
	return append(out, quota.Policies()...)
}

// hotKeyLimit, in requests, is crossed thousands of times instead of once.
const hotKeyLimit = 50

// Crossed is the policy with a limit for workloads that count crossings.
func Crossed(p quota.Policy) quota.Policy {
	p.Limit = min(p.Limit, hotKeyLimit*slices.Max(append([]int64{1}, p.Costs...)))
	return p
}
