package consensus

import (
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// The store and the name of zookeeper-counter.
const (
	// NeedZooKeeper is the store of zookeeper-counter; its client is a *zk.Conn.
	NeedZooKeeper strategies.Need = "zookeeper"
	// ZooKeeperCounter is the name of the strategy whose code is in package zookeeper.
	ZooKeeperCounter = "zookeeper-counter"
)

func init() {
	strategies.Register(strategies.Meta{
		Name:   ZooKeeperCounter,
		Source: "ADR-005",
		Doc:    "a counter in a ZooKeeper node, changed on condition of its version",
		Notes: strategies.Notes{
			How: []string{
				"A read gives the node of the subject and window, and its version.",
				"A request that does not fit is rejected.",
				"Otherwise setData writes the new sum if the version is unchanged; the first request of a window creates the node.",
				"If the version has changed, the write fails, and the caller reads again.",
			},
			Deviations: []string{
				"The record names no algorithm: a versioned node is that of ZooKeeper's recipes.",
				"Nodes of ended windows stay: by default ZooKeeper removes only nodes of a session.",
				"A started server is alone: a decision waits for its disk, not for a majority.",
			},
			Use:   "Use it for few requests per second and subject without wrong decisions, if you have ZooKeeper anyway.",
			Avoid: "Avoid it on a hot key: every success makes all callers fail that read before it, and each failure costs two round trips.",
		},
		Form:      strategies.Rejected,
		Needs:     []strategies.Need{NeedZooKeeper},
		Excluded:  notParked("ZooKeeper's client"),
		Kinds:     kinds,
		GivesBack: true,
		Counts:    quota.CountsAdmitted,
		Options: []quota.Option{{
			Name: "sync", Type: "bool", Default: "false",
			Doc: "ask the leader before each first read, which makes it current on several servers",
		}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			neverRejects,
		},
		Elsewhere: strategies.WithFull,
	})
}
