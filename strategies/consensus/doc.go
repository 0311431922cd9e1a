// Package consensus lists the strategies on services whose clients are large: a
// counter in etcd, a counter in ZooKeeper, and requests through a queue of NATS
// JetStream. It registers what there is to say about them, so that every program
// lists them. Their code is in the module [github.com/quotabench/quotabench/full],
// which brings the clients in.
package consensus

import (
	_ "embed"

	"github.com/quotabench/quotabench/strategies"
)

//go:embed notes.md
var notes string

// notParked is why these strategies run on the wall clock alone.
func notParked(client string) map[strategies.Mode]string {
	return map[strategies.Mode]string{
		strategies.ModeSimulate: client + " waits on the wall clock and on goroutines of its own, which virtual time cannot stop",
		strategies.ModeExplore:  client + " sends from goroutines of its own, so its commands cannot be held back one by one",
	}
}
