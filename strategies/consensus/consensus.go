package consensus

import (
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// NeedEtcd is the store of etcd-counter; its client is a *clientv3.Client.
const NeedEtcd strategies.Need = "etcd"

func init() {
	family.Register(files, meta("etcd's client", strategies.Meta{
		Name:    codes.EtcdCounter,
		Needs:   []strategies.Need{NeedEtcd},
		Options: []quota.Option{{Name: "ttl", Default: "lease", Values: []string{"lease", "none"}}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			family.NoFalseReject(),
		},
	}))
}

// NeedZooKeeper is the store of zookeeper-counter; its client is a *zk.Conn.
const NeedZooKeeper strategies.Need = "zookeeper"

func init() {
	family.Register(files, meta("ZooKeeper's client", strategies.Meta{
		Name:    codes.ZooKeeperCounter,
		Needs:   []strategies.Need{NeedZooKeeper},
		Options: []quota.Option{{Name: "sync", Type: "bool", Default: "false"}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			{Property: quota.PropertyFalseReject, Formula: "0 on one server or with sync=true", Bound: family.None},
		},
	}))
}

// NeedNATS is the store of queue; its client is a *nats.Conn.
const NeedNATS strategies.Need = "nats"

// The values of the option meanwhile of queue.
const (
	meanwhileWait  = "wait"
	MeanwhileAdmit = "admit"
)

func init() {
	family.Register(files, meta("NATS' client", strategies.Meta{
		Name:    codes.QueueOfCharges,
		Needs:   []strategies.Need{NeedNATS},
		Options: []quota.Option{{Name: "meanwhile", Default: meanwhileWait, Values: []string{meanwhileWait, MeanwhileAdmit}}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			family.ExactlyUnless("L where callers wait", func(params quota.Params) bool {
				return params.Options["meanwhile"] == MeanwhileAdmit
			},
				quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			family.NoFalseReject(),
		},
	}))
}
