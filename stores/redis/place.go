package redis

import (
	"context"
	"errors"
	"strings"

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
	case r.own == nil && len(r.nodes) > 0:
		return r.nodes[0].Place()
	case r.own != nil && r.own.Local():
		return stores.StartedHere
	case r.own == nil && r.onThisHost():
		return stores.OnThisHost
	}
	return stores.Elsewhere
}

func (r *Store) onThisHost() bool {
	for addr := range strings.SplitSeq(r.info.Addr, ",") {
		if !server.OnThisHost(addr) {
			return false
		}
	}
	return true
}

// Processes are those of all servers that were started here.
func (r *Store) Processes(ctx context.Context) ([]int, error) {
	var all []int
	err := r.each(func(s server.Server) error {
		pids, err := s.Processes(ctx)
		all = append(all, pids...)
		return err
	})
	return all, err
}

// Confine lets servers that were started here run on some cores alone.
func (r *Store) Confine(ctx context.Context, cores []int) error {
	return r.each(func(s server.Server) error { return s.Confine(ctx, cores) })
}

// each calls f with each server that was started for the store.
func (r *Store) each(f func(server.Server) error) error {
	var errs []error
	if r.own != nil {
		errs = append(errs, f(r.own))
	}
	for _, n := range r.nodes {
		errs = append(errs, n.each(f))
	}
	if errs == nil {
		return server.ErrNotOurs
	}
	return errors.Join(errs...)
}
