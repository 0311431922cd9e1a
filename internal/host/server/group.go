package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	for _, server := range g {
		pids, perr := server.Processes(ctx)
		all = append(all, pids...)
		err = perr
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
	for _, server := range g {
		err = errors.Join(err, server.Confine(ctx, numbers))
	}
	return err
}

// Close implements [Server], the last one first.
func (g Group) Close() (err error) {
	for _, server := range slices.Backward(g) {
		err = errors.Join(err, server.Close())
	}
	return err
}

// Fleet is servers of one kind that were started here, one for each configuration that
// was asked for.
type Fleet[S Server] struct {
	// Kind is the driver's name.
	Kind string

	mu     sync.Mutex
	parts  map[string]S // by their settings
	cores  []int        // that servers are confined to; nil for all
	closed bool

	closing sync.Once
	result  error
}

// Serve returns the server with these settings, and starts it if there is none.
func (f *Fleet[S]) Serve(ctx context.Context, settings map[string]string, start func() (S, error)) (s S, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return s, errors.New(f.Kind + " is closed")
	}
	key := fmt.Sprint(settings) // which prints maps in the order of their keys
	if s, ok := f.parts[key]; ok {
		return s, nil
	}
	s, err = start()
	if err != nil {
		return s, err
	}
	if f.parts == nil {
		f.parts = map[string]S{}
	}
	f.parts[key] = s
	if f.cores != nil {
		err = s.Confine(ctx, f.cores)
	}
	return s, err
}

// group are all servers. The caller holds mu.
func (f *Fleet[S]) group() (group Group) {
	for _, key := range slices.Sorted(maps.Keys(f.parts)) {
		group = append(group, f.parts[key])
	}
	return group
}

// Processes are those of all servers.
func (f *Fleet[S]) Processes(ctx context.Context) ([]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.group().Processes(ctx)
}

// Confine lets all servers run on some cores alone, and those that are started later.
func (f *Fleet[S]) Confine(ctx context.Context, cores []int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cores = cores
	return f.group().Confine(ctx, cores)
}

// Close ends all servers. Only the first call does anything; all return its error.
func (f *Fleet[S]) Close() error {
	f.closing.Do(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.closed = true
		if err := f.group().Close(); err != nil {
			f.result = fmt.Errorf("close %s: %w", f.Kind, err)
		}
	})
	return f.result
}
