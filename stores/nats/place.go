package nats

import (
	"context"
	"strings"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

var _ stores.Placed = (*Store)(nil)

// Place is where the server runs. What a URL leads to is on this host by its
// address alone.
func (n *Store) Place() stores.Place {
	switch {
	case n.own != nil:
		return stores.StartedHere
	case server.AllOnThisHost(strings.Split(n.info.Addr, ",")):
		return stores.OnThisHost
	}
	return stores.Elsewhere
}

// Processes are those of a server that was started here.
func (n *Store) Processes(ctx context.Context) ([]int, error) { return n.own.Processes(ctx) }

// Confine lets a server that was started here run on some cores alone.
func (n *Store) Confine(ctx context.Context, cores []int) error { return n.own.Confine(ctx, cores) }
