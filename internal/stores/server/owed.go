package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// payTimeout bounds how long what is owed is tried again for.
const payTimeout = 3 * time.Second

// Owed remembers what could not be removed from a server, so that it is tried again.
// The zero value is ready.
type Owed struct {
	mu    sync.Mutex
	names map[string]bool
}

// Note remembers a name whose removal failed, forgets one that was removed, and returns
// the error.
func (o *Owed) Note(name string, err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		delete(o.names, name)
		return nil
	}
	if o.names == nil {
		o.names = map[string]bool{}
	}
	o.names[name] = true
	return err
}

// Any reports whether something is owed.
func (o *Owed) Any() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.names) > 0
}

// Pay calls remove with each name that is owed.
func (o *Owed) Pay(ctx context.Context, remove func(ctx context.Context, name string) error) (err error) {
	o.mu.Lock()
	names := slices.Collect(maps.Keys(o.names))
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, payTimeout)
	defer cancel()
	for _, name := range names {
		err = errors.Join(err, o.Note(name, remove(ctx, name)))
	}
	return err
}
