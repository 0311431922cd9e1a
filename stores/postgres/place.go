package postgres

import (
	"context"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

var _ stores.Placed = (*Store)(nil)

// Place is where the server runs. What a URL or a client of the caller's leads to is
// on this host by its address alone: a tunnel looks the same.
func (p *Store) Place() stores.Place {
	switch {
	case p.own != nil && p.own.Local():
		return stores.StartedHere
	case p.own == nil && server.OnThisHost(p.info.Addr):
		return stores.OnThisHost
	}
	return stores.Elsewhere
}

// Processes are those of a server that was started here.
func (p *Store) Processes(ctx context.Context) ([]int, error) {
	if p.own == nil {
		return nil, server.ErrNotOurs
	}
	return p.own.Processes(ctx)
}

// Confine lets a server that was started here run on some cores alone.
func (p *Store) Confine(ctx context.Context, cores []int) error {
	if p.own == nil {
		return server.ErrNotOurs
	}
	return p.own.Confine(ctx, cores)
}
