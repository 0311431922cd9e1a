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
				"A linearizable read gives the counter of the subject and window, and its revision.",
				"A request that does not fit is rejected by that read alone.",
				"Otherwise a transaction writes the new sum on condition that the revision is still the one that was read.",
				"A transaction that fails returns the counter as it is now, and the caller tries again with that.",
				"Keys of a window share a lease that ends after it.",
			},
			Deviations: []string{
				"The record names a distributed counter in etcd and says nothing of how it counts: compare-and-swap is how etcd's own documents do.",
				"A server that is started here is one member, so a decision waits for its disk and not for a majority.",
			},
			Use:   "Use it if few requests per second and subject are decided and none may be decided wrongly, on an etcd that is there already.",
			Avoid: "Avoid it on a hot key: every success makes all callers fail that read before it, and they retry.",
		},
		Form:      strategies.Rejected,
		Needs:     []strategies.Need{NeedEtcd},
		Excluded:  notParked("etcd's client"),
		Kinds:     kinds,
		GivesBack: true,
		Counts:    quota.CountsAdmitted,
		Options: []quota.Option{{
			Name: "ttl", Default: "lease", Values: []string{"lease", "none"},
			Doc: "lease: keys go some time after their window; none: they stay, and the window in their name alone resets the quota",
		}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			neverRejects,
		},
		Elsewhere: strategies.WithFull,
	})
}
