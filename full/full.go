// Package full adds the stores and strategies whose clients are too large for every
// program: etcd, ZooKeeper, NATS, and Envoy's rate-limit protocol. It is imported for
// that effect alone:
//
//	import _ "github.com/quotabench/quotabench/full"
//
// The command quotabench imports it where it is built with -tags full.
package full

import (
	_ "github.com/quotabench/quotabench/stores/etcd"
	_ "github.com/quotabench/quotabench/stores/nats"
	_ "github.com/quotabench/quotabench/stores/ratelimit"
	_ "github.com/quotabench/quotabench/stores/zookeeper"
	_ "github.com/quotabench/quotabench/strategies/consensus/etcd"
	_ "github.com/quotabench/quotabench/strategies/consensus/jetstream"
	_ "github.com/quotabench/quotabench/strategies/consensus/zookeeper"
	_ "github.com/quotabench/quotabench/strategies/service/ratelimit"
)
