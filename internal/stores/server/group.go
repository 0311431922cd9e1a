package server

import (
	"context"
	"errors"
	"slices"
)

// Group is several servers that were started here and make one store. If one is to be named it is the first.
type Group []Server

var _ Server = Group(nil)

// PID implements [Server].
func (g Group) PID() int { return g[0].PID() }

// Ended implements [Server]: one of them is gone.
func (g Group) Ended() bool { return slices.ContainsFunc(g, Server.Ended) }

// LastWords implements [Server].
func (g Group) LastWords() string { return g[max(0, slices.IndexFunc(g, Server.Ended))].LastWords() }

// Local implements [Server].
func (g Group) Local() bool { return g[0].Local() }

// Processes implements [Server]. Those of servers that are gone are left out, unless all are.
func (g Group) Processes(ctx context.Context) (all []int, err error) {
	err = ErrNotOurs
	for _, s := range g {
		pids, perr := s.Processes(ctx)
		all, err = append(all, pids...), perr
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, err
}

// Confine implements [Server].
func (g Group) Confine(ctx context.Context, numbers []int) (err error) {
	if len(g) == 0 {
		return ErrNotOurs
	}
	for _, s := range g {
		err = errors.Join(err, s.Confine(ctx, numbers))
	}
	return err
}

// Close implements [Server], the last one first.
func (g Group) Close() (err error) {
	for _, s := range slices.Backward(g) {
		err = errors.Join(err, s.Close())
	}
	return err
}
