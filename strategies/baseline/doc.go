// Package baseline holds the strategies that mark the ends of every scale:
// "unlimited", which costs what the harness itself costs, and "exact", which is
// as right as a strategy can be and knows nothing of distribution.
package baseline

import (
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// everyKind and everyFault: neither baseline has a store that could fail.
var (
	everyKind     = quota.Kinds()
	everyFault    = quota.Faults()
	noFalseReject = quota.Clause{
		Property: quota.PropertyFalseReject, Tolerates: everyFault,
		Formula: "0", Bound: func(quota.Params) int64 { return 0 },
	}
)

func init() {
	strategies.Register(unlimitedMeta)
	strategies.Register(exactMeta)
}
