package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

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
	if s, err = start(); err != nil {
		return s, err
	}
	if f.parts == nil {
		f.parts = map[string]S{}
	}
	if f.parts[key] = s; f.cores != nil {
		err = s.Confine(ctx, f.cores)
	}
	return s, err
}

// group are all servers. The caller holds mu.
func (f *Fleet[S]) group() (g Group) {
	for _, key := range slices.Sorted(maps.Keys(f.parts)) {
		g = append(g, f.parts[key])
	}
	return g
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
