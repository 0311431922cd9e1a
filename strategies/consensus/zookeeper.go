package consensus

import (
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

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
