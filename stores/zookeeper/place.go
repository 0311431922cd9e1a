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
	if z.own != nil {
		return stores.StartedHere
	}
	for _, x := range z.servers {
		if !server.OnThisHost(x) {
			return stores.Elsewhere
		}
	}
	return stores.OnThisHost
}

// Processes are those of a server that was started here.
func (z *Store) Processes(ctx context.Context) ([]int, error) {
	if z.own == nil {
		return nil, server.ErrNotOurs
	}
	return z.own.Processes(ctx)
}

// Confine lets a server that was started here run on some cores alone.
func (z *Store) Confine(ctx context.Context, cores []int) error {
	if z.own == nil {
		return server.ErrNotOurs
	}
	return z.own.Confine(ctx, cores)
}
