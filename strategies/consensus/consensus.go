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

// The store and the name of zookeeper-counter.
const (
	// NeedZooKeeper is the store of zookeeper-counter; its client is a *zk.Conn.
	NeedZooKeeper strategies.Need = "zookeeper"
	// ZooKeeperCounter is the name of the strategy whose code is in package zookeeper.
	ZooKeeperCounter = "zookeeper-counter"
)

func init() {
	family.Register(files, meta("ZooKeeper's client", strategies.Meta{
		Name:    ZooKeeperCounter,
		Needs:   []strategies.Need{NeedZooKeeper},
		Options: []quota.Option{{Name: "sync", Type: "bool", Default: "false"}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			{Property: quota.PropertyFalseReject, Formula: "0 on one server or with sync=true", Bound: family.None},
		},
	}))
}

// The store and the name of queue.
const (
	// NeedNATS is the store of queue; its client is a *nats.Conn.
	NeedNATS strategies.Need = "nats"
	// Queue is the name of the strategy whose code is in package jetstream.
	Queue = "queue"
)

// The values of the option meanwhile of queue.
const (
	meanwhileWait  = "wait"
	MeanwhileAdmit = "admit"
)

func init() {
	family.Register(files, meta("NATS' client", strategies.Meta{
		Name:    Queue,
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
