package zookeeper

import (
	"context"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

var _ stores.Placed = (*Store)(nil)

// Place is where the server runs. What a URL leads to is on this host by its
// address alone.
func (z *Store) Place() stores.Place {
	switch {
	case z.own != nil:
		return stores.StartedHere
	case server.AllOnThisHost(z.servers):
		return stores.OnThisHost
	}
	return stores.Elsewhere
}

// Processes are those of a server that was started here.
func (z *Store) Processes(ctx context.Context) ([]int, error) { return z.own.Processes(ctx) }

// Confine lets a server that was started here run on some cores alone.
func (z *Store) Confine(ctx context.Context, cores []int) error { return z.own.Confine(ctx, cores) }
