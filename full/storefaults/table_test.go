//go:build linux

package storefaults

import "time"

// What a fault does to a run, as far as it is the same every time.
const (
	fails    = "requests fail"
	without  = "decisions without the store"
	waits    = "requests wait"
	forgets  = "counts are lost"
	bothFail = fails + ", and " + forgets

	miscounts = "counts are a unit off"
)

// fault is something that happens to a store in the middle of a run.
type fault struct {
	store, name string
	strategy    string
	does        string
	code        string // of the finding
	says        string // of its text
	// undecided are the properties that the strategy declares and that are left open.
	undecided string
	// busy is set if callers ask one after the other without a pause, so that every
	// connection is in use.
	busy bool
	// limit of each subject, if that is higher than usual.
	limit int64
	// lasts is how long the run takes, if that is longer than usual.
	lasts time.Duration
}

// faults of stores, of every kind that a strategy can name. README.md is this
// table.
var faults = []fault{
	{store: "Redis", name: "FLUSHALL", strategy: "incr-expire", does: forgets, code: "store-lost-data",
		says: "redis lost what the run kept there", undecided: "leak, false-reject"},
	{store: "Redis", name: "keys removed by their prefix", strategy: "incr-expire-atomic", does: forgets,
		code: "store-lost-data", says: "redis lost what the run kept there", undecided: "leak, false-reject"},
	{store: "Redis", name: "one counter overwritten", strategy: "incr-expire-atomic", does: forgets, code: "store-changed",
		says: "somebody else changed what the strategy counted in redis", undecided: "leak, false-reject", limit: 40,
		lasts: 500 * time.Millisecond},
	{store: "Redis", name: "all counters raised by 1", strategy: "incr-expire-atomic", does: miscounts,
		code: "store-changed", says: "somebody else changed what the strategy counted in redis",
		undecided: "leak, false-reject", limit: 40, lasts: 500 * time.Millisecond},
	{store: "Redis", name: "all counters lowered by 1", strategy: "incr-expire-atomic", does: miscounts,
		code: "store-changed", says: "somebody else changed what the strategy counted in redis",
		undecided: "leak, false-reject", limit: 40, lasts: 500 * time.Millisecond},
	{store: "Redis", name: "one counter removed", strategy: "incr-expire", does: forgets, code: "store-changed",
		says: "somebody else changed what the strategy counted in redis", undecided: "leak, false-reject", limit: 40,
		lasts: 500 * time.Millisecond},
	{store: "Redis", name: "all counters removed, and the mark not", strategy: "incr-expire-atomic", does: forgets,
		code: "store-changed", says: "more", undecided: "leak, false-reject", limit: 40, lasts: 500 * time.Millisecond},
	{store: "Redis", name: "memory full", strategy: "incr-expire", does: without, code: "store-failed",
		says: "with the error OOM", undecided: "false-reject"},
	{store: "Redis", name: "memory full, with eviction", strategy: "incr-expire", does: without, code: "store-evicted",
		says: "redis evicted", undecided: "leak, false-reject"},
	{store: "Redis", name: "demoted to a replica", strategy: "incr-expire", does: without, code: "store-failed",
		says: "with the error READONLY", undecided: "false-reject"},
	{store: "Redis", name: "stopped for a while", strategy: "incr-expire", does: waits, code: "store-failed",
		says: "redis did not answer as it should", undecided: "false-reject", lasts: 700 * time.Millisecond},
	{store: "Redis", name: "clients paused", strategy: "incr-expire", does: waits, code: "store-failed",
		says: "redis did not answer as it should", undecided: "false-reject", lasts: 700 * time.Millisecond},
	{store: "Redis", name: "replicas missing that writes need", strategy: "incr-expire", does: without,
		code: "store-failed", says: "with the error NOREPLICAS", undecided: "false-reject"},
	{store: "Redis", name: "a command forbidden", strategy: "incr-expire-atomic", does: without, code: "store-failed",
		says: "with the error NOPERM", undecided: "false-reject"},
	{store: "Redis", name: "password rotated", strategy: "incr-expire", does: without, code: "store-failed",
		says: "with the error WRONGPASS", undecided: "false-reject"},
	{store: "Redis", name: "too few connections", strategy: "incr-expire", does: without, code: "store-failed",
		says: "redis did not answer as it should", undecided: "false-reject"},
	{store: "Redis", name: "connections ended", busy: true, strategy: "incr-expire", does: without, code: "store-failed",
		says: "of the strategy", undecided: "false-reject"},
	{store: "Redis", name: "killed", strategy: "incr-expire", does: without, code: "store-failed",
		says: "redis did not answer as it should", undecided: "false-reject"},
	{store: "Redis", name: "restarted with its data", strategy: "incr-expire", does: without, code: "store-restarted",
		says: "redis was restarted", undecided: "leak, false-reject", lasts: 700 * time.Millisecond},
	{store: "Redis", name: "restarted empty", strategy: "incr-expire", does: without, code: "store-lost-data",
		says: "redis lost what the run kept there", undecided: "leak, false-reject", lasts: 700 * time.Millisecond},
	{store: "Redis with a replica", name: "failover", strategy: "incr-expire", does: without, code: "store-restarted",
		says: "another server took its place", undecided: "leak, false-reject", lasts: 600 * time.Millisecond},
	{store: "Redis Cluster", name: "FLUSHALL on one master", strategy: "incr-expire-atomic", does: forgets,
		code: "store-lost-data", says: "redis lost what the run kept there", undecided: "leak, false-reject"},
	{store: "Redis Cluster", name: "slots lost", strategy: "incr-expire-atomic", does: without, code: "store-failed",
		says: "with the error CLUSTERDOWN", undecided: "false-reject"},
	{store: "Redis Cluster", name: "one master stopped for a while", strategy: "incr-expire-atomic", does: waits,
		code: "store-failed", says: "redis did not answer as it should", undecided: "false-reject",
		lasts: 700 * time.Millisecond},
	{store: "Redis Cluster", name: "one master killed", strategy: "incr-expire-atomic", does: without,
		code: "store-failed", says: "redis did not answer as it should", undecided: "false-reject"},
	{store: "PostgreSQL", name: "schema dropped", strategy: "pg-conditional", does: fails, code: "store-lost-data",
		says: "postgres lost what the run kept there", undecided: "leak, false-reject"},
	{store: "PostgreSQL", name: "tables dropped", strategy: "pg-conditional", does: fails, code: "store-lost-data",
		says: "postgres lost what the run kept there", undecided: "leak, false-reject"},
	{store: "PostgreSQL", name: "tables emptied", strategy: "pg-conditional", does: forgets, code: "store-lost-data",
		says: "postgres lost what the run kept there", undecided: "leak, false-reject"},
	{store: "PostgreSQL", name: "rows removed from all tables", strategy: "pg-conditional", does: forgets,
		code: "store-lost-data", says: "postgres lost what the run kept there", undecided: "leak, false-reject"},
	{store: "PostgreSQL", name: "all counters set to 0", strategy: "pg-conditional", does: forgets, code: "store-changed",
		says: "somebody else changed what the strategy counted in postgres", undecided: "leak, false-reject", limit: 40,
		lasts: 500 * time.Millisecond},
	{store: "PostgreSQL", name: "all counters raised by 1", strategy: "pg-conditional", does: miscounts,
		code: "store-changed", says: "somebody else changed what the strategy counted in postgres",
		undecided: "leak, false-reject", limit: 40, lasts: 500 * time.Millisecond},
	{store: "PostgreSQL", name: "all counters lowered by 1", strategy: "pg-conditional", does: miscounts,
		code: "store-changed", says: "somebody else changed what the strategy counted in postgres",
		undecided: "leak, false-reject", limit: 40, lasts: 500 * time.Millisecond},
	{store: "PostgreSQL", name: "one counter set to 2,000,000,000", strategy: "pg-conditional", does: forgets,
		code: "store-changed", says: "somebody else changed what the strategy counted in postgres",
		undecided: "leak, false-reject", limit: 40, lasts: 500 * time.Millisecond},
	{store: "PostgreSQL", name: "one row removed", strategy: "pg-conditional", does: forgets, code: "store-changed",
		says: "somebody else changed what the strategy counted in postgres", undecided: "leak, false-reject", limit: 40,
		lasts: 500 * time.Millisecond},
	{store: "PostgreSQL", name: "backends terminated", strategy: "pg-conditional", does: fails, code: "store-failed",
		says: "of the strategy", undecided: "false-reject"},
	{store: "PostgreSQL", name: "read-only", strategy: "pg-conditional", does: fails, code: "store-failed",
		says: "postgres did not answer as it should", undecided: "false-reject"},
	{store: "PostgreSQL", name: "rights taken away", strategy: "pg-conditional", does: fails, code: "store-failed",
		says: "postgres did not answer as it should", undecided: "false-reject"},
	{store: "PostgreSQL", name: "password rotated", strategy: "pg-conditional", does: fails, code: "store-failed",
		says: "of the strategy", undecided: "false-reject"},
	{store: "PostgreSQL", name: "too few connections", strategy: "pg-conditional", does: fails, code: "store-failed",
		says: "of the strategy", undecided: "false-reject"},
	{store: "PostgreSQL", name: "stopped for a while", strategy: "pg-conditional", does: waits, code: "store-failed",
		says: "postgres did not answer as it should", undecided: "false-reject", lasts: 700 * time.Millisecond},
	{store: "PostgreSQL", name: "killed", strategy: "pg-conditional", does: fails, code: "store-failed",
		says: "postgres did not answer as it should", undecided: "false-reject"},
	{store: "PostgreSQL", name: "restarted with its data", strategy: "pg-conditional", does: fails,
		code: "store-restarted", says: "postgres was restarted", undecided: "leak, false-reject", lasts: time.Second},
	{store: "etcd", name: "data of runs removed", strategy: "etcd-counter", does: forgets, code: "store-lost-data",
		says: "etcd lost what the run kept there", undecided: "leak, false-reject"},
	{store: "etcd", name: "stopped for a while", strategy: "etcd-counter", does: waits, code: "store-failed",
		says: "etcd did not answer as it should", undecided: "false-reject", lasts: 700 * time.Millisecond},
	{store: "etcd", name: "killed", strategy: "etcd-counter", does: fails, code: "store-failed",
		says: "etcd did not answer as it should", undecided: "false-reject"},
	{store: "etcd", name: "restarted with its data", strategy: "etcd-counter", does: fails, code: "store-restarted",
		says: "etcd was restarted", undecided: "leak, false-reject", lasts: time.Second},
	{store: "etcd", name: "restarted empty", strategy: "etcd-counter", does: bothFail, code: "store-lost-data",
		says: "etcd lost what the run kept there", undecided: "leak, false-reject", lasts: time.Second},
	{store: "NATS", name: "data of runs removed", strategy: "queue", does: bothFail, code: "store-lost-data",
		says: "nats lost what the run kept there", undecided: "leak, false-reject"},
	{store: "NATS", name: "stopped for a while", strategy: "queue", does: waits, code: "store-failed",
		says: "nats did not answer as it should", undecided: "false-reject", lasts: 700 * time.Millisecond},
	{store: "NATS", name: "killed", strategy: "queue", does: fails, code: "store-failed",
		says: "nats did not answer as it should", undecided: "false-reject"},
	{store: "NATS", name: "restarted with its data", strategy: "queue", does: fails, code: "store-restarted",
		says: "nats was restarted", undecided: "leak, false-reject", lasts: time.Second},
	{store: "NATS", name: "restarted empty", strategy: "queue", does: bothFail, code: "store-lost-data",
		says: "nats lost what the run kept there", undecided: "leak, false-reject", lasts: time.Second},
	{store: "ZooKeeper", name: "data of runs removed", strategy: "zookeeper-counter", does: bothFail,
		code: "store-lost-data", says: "zookeeper lost what the run kept there", undecided: "leak, false-reject"},
	{store: "ZooKeeper", name: "stopped for a while", strategy: "zookeeper-counter", does: waits, code: "store-failed",
		says: "zookeeper did not answer as it should", undecided: "false-reject", lasts: 700 * time.Millisecond},
	{store: "ZooKeeper", name: "killed", strategy: "zookeeper-counter", does: fails, code: "store-failed",
		says: "zookeeper did not answer as it should", undecided: "false-reject"},
	{store: "ZooKeeper", name: "restarted empty, and rejecting clients that know of more", strategy: "zookeeper-counter",
		does: fails, code: "store-failed", says: "zookeeper did not answer as it should", undecided: "false-reject",
		lasts: 4 * time.Second},
}
