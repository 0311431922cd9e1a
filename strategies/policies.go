package strategies

import (
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// PoliciesToTry are the policies to try if the user chose none: first base, then base with each other kind of window
// that a strategy serves, in the order of all and of Kinds, then all registered policies.
func PoliciesToTry(base quota.Policy, all []Selection) []quota.Policy {
	out := []quota.Policy{base}
	tried := func(kind quota.Kind) bool {
		return slices.ContainsFunc(out, func(policy quota.Policy) bool { return policy.Window.Kind == kind })
	}
	for _, sel := range all {
		for _, kind := range sel.Kinds {
			if tried(kind) {
				continue
			}
			policy := base.As(kind)
			if policy.Validate() == nil {
				out = append(out, policy)
			}
		}
	}
	return append(out, quota.Policies()...)
}
