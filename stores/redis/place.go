package redis

import (
	"context"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

var _ stores.Placed = (*Store)(nil)

// Place is where the server runs. What a URL or a client of the caller's leads to is
// on this host by its address alone: a tunnel looks the same.
func (r *Store) Place() stores.Place {
	switch {
	case r.model != nil:
		return stores.InProcess
	case r.own != nil && r.own.Local():
		return stores.StartedHere
	case r.own == nil && server.OnThisHost(r.info.Addr):
		return stores.OnThisHost
	}
	return stores.Elsewhere
}

// Processes are those of a server that was started here.
func (r *Store) Processes(ctx context.Context) ([]int, error) {
	if r.own == nil {
		return nil, server.ErrNotOurs
	}
	return r.own.Processes(ctx)
}

// Confine lets a server that was started here run on some cores alone.
func (r *Store) Confine(ctx context.Context, cores []int) error {
	if r.own == nil {
		return server.ErrNotOurs
	}
	return r.own.Confine(ctx, cores)
}
