package consensus

import (
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// The store and the name of etcd-counter.
const (
	// NeedEtcd is the store of etcd-counter; its client is a *clientv3.Client.
	NeedEtcd strategies.Need = "etcd"
	// EtcdCounter is the name of the strategy whose code is in package etcd.
	EtcdCounter = "etcd-counter"
)

func init() {
	family.Register(files, meta("etcd's client", strategies.Meta{
		Name:    EtcdCounter,
		Needs:   []strategies.Need{NeedEtcd},
		Options: []quota.Option{{Name: "ttl", Default: "lease", Values: []string{"lease", "none"}}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			family.NoFalseReject(),
		},
	}))
}
