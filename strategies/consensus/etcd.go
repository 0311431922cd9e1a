package consensus

import (
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// The store and the name of etcd-counter.
const (
	// NeedEtcd is the store of etcd-counter; its client is a *clientv3.Client.
	NeedEtcd strategies.Need = "etcd"
	// EtcdCounter is the name of the strategy whose code is in package etcd.
	EtcdCounter = "etcd-counter"
)

func init() {
	strategies.Register(strategies.Meta{
		Name:   EtcdCounter,
		Source: "ADR-005",
		Doc:    "a counter in etcd, changed by compare-and-swap on its revision",
		Notes: strategies.Notes{
			How: []string{
				"A linearizable read returns the counter of the subject and window, and its revision.",
				"A request that does not fit is rejected.",
				"Otherwise a transaction writes the new sum if the revision is unchanged.",
				"A transaction that fails returns the current counter, and the caller retries with it.",
				"Keys of a window share a lease that ends after it.",
			},
			Deviations: []string{
				"The record names no algorithm: compare-and-swap is that of etcd's documentation.",
				"A started server has one member: a decision waits for its disk, not for a majority.",
			},
			Use:   "Use it for few requests per second and subject without wrong decisions, if you have etcd anyway.",
			Avoid: "Avoid it on a hot key: each success makes all callers fail that read before it, and they retry.",
		},
		Form:      strategies.Rejected,
		Needs:     []strategies.Need{NeedEtcd},
		Excluded:  notParked("etcd's client"),
		Kinds:     kinds,
		GivesBack: true,
		Counts:    quota.CountsAdmitted,
		Options: []quota.Option{{
			Name: "ttl", Default: "lease", Values: []string{"lease", "none"},
			Doc: "lease: keys are removed after their window; none: they stay",
		}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			neverRejects,
		},
		Elsewhere: strategies.WithFull,
	})
}
