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
	addrs := make([]string, len(e.endpoints))
	for i, x := range e.endpoints {
		_, addrs[i], _ = strings.Cut(x, "://")
	}
	switch {
	case e.own != nil:
		return stores.StartedHere
	case server.AllOnThisHost(addrs):
		return stores.OnThisHost
	}
	return stores.Elsewhere
}

// Processes are those of a server that was started here.
func (e *Store) Processes(ctx context.Context) ([]int, error) { return e.own.Processes(ctx) }

// Confine lets a server that was started here run on some cores alone.
func (e *Store) Confine(ctx context.Context, cores []int) error { return e.own.Confine(ctx, cores) }
