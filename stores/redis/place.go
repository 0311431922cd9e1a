package redis

import (
	"context"
	"errors"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Placed = (*Store)(nil)

// Place is where the server runs. What a URL or a client of the caller's leads to is
// on this host by its address alone: a tunnel looks the same.
func (r *Store) Place() stores.Place {
	switch {
	case r.model != nil:
		return stores.InProcess
	case r.self.Own == nil && len(r.nodes) > 0:
		return r.nodes[0].Place()
	}
	return r.common.Place()
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
	if r.self.Own != nil {
		errs = append(errs, f(r.self.Own))
	}
	for _, n := range r.nodes {
		errs = append(errs, n.each(f))
	}
	if errs == nil {
		return server.ErrNotOurs
	}
	return errors.Join(errs...)
}
