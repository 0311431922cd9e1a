package etcd

import (
	"context"
	"strings"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

var _ stores.Placed = (*Store)(nil)

// Place is where the server runs. What a URL leads to is on this host by its
// address alone.
func (e *Store) Place() stores.Place {
	if e.own != nil {
		return stores.StartedHere
	}
	for _, x := range e.endpoints {
		_, addr, _ := strings.Cut(x, "://")
		if !server.OnThisHost(addr) {
			return stores.Elsewhere
		}
	}
	return stores.OnThisHost
}

// Processes are those of a server that was started here.
func (e *Store) Processes(ctx context.Context) ([]int, error) {
	if e.own == nil {
		return nil, server.ErrNotOurs
	}
	return e.own.Processes(ctx)
}

// Confine lets a server that was started here run on some cores alone.
func (e *Store) Confine(ctx context.Context, cores []int) error {
	if e.own == nil {
		return server.ErrNotOurs
	}
	return e.own.Confine(ctx, cores)
}
