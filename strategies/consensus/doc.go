// Package consensus lists the strategies on services whose clients are large: a
// counter in etcd, a counter in ZooKeeper, and requests through a queue of NATS
// JetStream. It registers what there is to say about them, so that every program
// lists them. Their code is in the module [github.com/quotabench/quotabench/full],
// which brings the clients in.
package consensus

import (
	"embed"

	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md
var files embed.FS

// meta completes what the strategies have in common. They run on the wall clock alone, because of their clients.
func meta(client string, m strategies.Meta) strategies.Meta {
	m.Elsewhere = strategies.WithFull
	m.Excluded = map[strategies.Mode]string{
		strategies.ModeSimulate: client +
			" waits on the wall clock and on goroutines of its own, which virtual time cannot stop",
		strategies.ModeExplore: client + " sends from goroutines of its own, so its commands cannot be held back one by one",
	}
	return family.GivingBack(m)
}
