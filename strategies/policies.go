package strategies

import (
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// PoliciesToTry are the policies to try if the user chose none: base, its form in each kind that the strategies serve,
// the first of a strategy's kinds first, and all registered policies.
func PoliciesToTry(base quota.Policy, all []Selection) []quota.Policy {
	out := []quota.Policy{base}
	for _, sel := range all {
		for _, kind := range sel.Kinds {
			policy := base.As(kind)
			known := slices.ContainsFunc(out, func(x quota.Policy) bool { return x.Window.Kind == kind })
			if !known && policy.Validate() == nil {
				out = append(out, policy)
			}
		}
	}
	return append(out, quota.Policies()...)
}
