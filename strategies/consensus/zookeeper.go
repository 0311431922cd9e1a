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
				"A request that does not fit is rejected by that read alone.",
				"Otherwise setData writes the new sum on condition of the version; the first request of a window creates the node.",
				"A write that finds another version fails, and the caller reads again.",
			},
			Deviations: []string{
				"The record names a distributed counter in ZooKeeper and says nothing of how it counts: a versioned node is " +
					"how ZooKeeper's own recipes do.",
				"Nodes of windows that have ended stay: ZooKeeper removes only what belongs to a session, unless its operator allows more.",
				"A server that is started here is one, so a decision waits for its disk and not for a majority.",
			},
			Use: "Use it if few requests per second and subject are decided and none may be decided wrongly, " +
				"on a ZooKeeper that is there already.",
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
			Doc: "ask the leader before each first read, so that it is the newest also on several servers; " +
				"otherwise a server answers by what it has",
		}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			neverRejects,
		},
		Elsewhere: strategies.WithFull,
	})
}
