// Package full adds the stores and strategies whose clients are too large for every
// program: etcd, ZooKeeper, NATS, and Envoy's rate-limit protocol. It is imported for
// that effect alone:
//
//	import _ "github.com/quotabench/quotabench/full"
//
// It is a module of its own, so that other programs do not name these clients in their
// go.mod. make build-full builds the command with it.
package full

import (
	_ "github.com/quotabench/quotabench/full/cluster"
	_ "github.com/quotabench/quotabench/full/stores/etcd"
	_ "github.com/quotabench/quotabench/full/stores/nats"
	_ "github.com/quotabench/quotabench/full/stores/ratelimit"
	_ "github.com/quotabench/quotabench/full/stores/zookeeper"
	_ "github.com/quotabench/quotabench/full/strategies/etcd"
	_ "github.com/quotabench/quotabench/full/strategies/jetstream"
	_ "github.com/quotabench/quotabench/full/strategies/ratelimit"
	_ "github.com/quotabench/quotabench/full/strategies/zookeeper"
)
