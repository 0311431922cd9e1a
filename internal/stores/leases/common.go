package leases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/stores"
)

// Self is what the store of every kind knows of itself: who it is, the server if it was
// started here, and the leases of this process on one that others use too.
type Self struct {
	// Kind is the driver's name.
	Kind  string
	About stores.Info
	// Own is nil if the server was not started here.
	Own server.Server
	// Replica is set if the server follows another one.
	Replica bool
	// Remove removes what is under a scope, its lease apart.
	Remove func(ctx context.Context, scope stores.Scope) error
	// Usage is [stores.Store]'s, for a kind that has no other Prepare than Common's.
	Usage func(ctx context.Context, scope stores.Scope) (stores.Usage, error)
	// Answers asks the server anything, once it was started again; nil if that cannot be done to it.
	Answers func(ctx context.Context) error
	// Reconnect, if it is set, makes the client anew that Remove uses. End does so
	// before it tries again.
	Reconnect func(ctx context.Context) error

	board Board      // nil if no leases are kept
	mu    sync.Mutex // from a change of the entries until it is noted
	held  map[stores.Scope]bool
	stop  context.CancelFunc // ends the renewals; nil if there are none
	done  chan struct{}

	owed    owed
	closing sync.Once
	closed  error
}

// Enter tries again to remove what could not be removed, and takes the lease on a scope.
func (s *Self) Enter(ctx context.Context, scope stores.Scope) error {
	_ = s.owed.pay(ctx, s.remove) // what still fails is tried again later
	return s.Common().Lease(ctx, scope)
}

func (s *Self) remove(ctx context.Context, name string) error {
	if err := s.Remove(ctx, stores.Scope(name)); err != nil {
		return err
	}
	return s.release(ctx, stores.Scope(name))
}

// End tries again to remove what could not be removed, calls what ends the clients, and
// ends the server if it was started here. Only the first call does anything; all return
// its error.
func (s *Self) End(clients func() error) error {
	s.closing.Do(func() {
		err := errors.Join(s.leave(), clients())
		if s.Own != nil {
			err = errors.Join(err, s.Own.Close())
		}
		if err != nil {
			s.closed = fmt.Errorf("close %s: %w", s.Kind, err)
		}
	})
	return s.closed
}

// leave ends the renewals, and tries again to remove what is owed to a server that goes on.
func (s *Self) leave() error {
	if !s.Shared() {
		return nil
	}
	s.stopRenewals()
	if s.Reconnect != nil && s.owed.pending() {
		if err := s.Reconnect(context.Background()); err != nil {
			return fmt.Errorf("%w: quotabench doctor --clean removes what is left", err)
		}
	}
	if err := s.owed.pay(context.Background(), s.remove); err != nil {
		return fmt.Errorf("%w: quotabench doctor --clean removes what is left", err)
	}
	return nil
}

// Common has the methods that stores of every kind share. Kinds embed it.
type Common struct{ self *Self }

// Common are the methods of a store that knows this of itself.
func (s *Self) Common() Common { return Common{s} }

// Driver names the kind of store.
func (c Common) Driver() string { return c.self.Kind }

// Info describes the server.
func (c Common) Info() stores.Info { return c.self.About }

// Owned reports whether the server was started here, for this process alone.
func (c Common) Owned() bool { return c.self.Own != nil }

// PID is the server's first process if it is a child of ours, and otherwise 0, also
// for a container.
func (c Common) PID() int {
	if c.self.Own == nil {
		return 0
	}
	return c.self.Own.PID()
}

// Place is where the server runs. What a URL or a client of the caller's leads to is on
// this host by its address alone: a tunnel looks the same.
func (c Common) Place() stores.Place {
	switch own := c.self.Own; {
	case own != nil && own.Local():
		return stores.StartedHere
	case own == nil && server.AllOnThisHost(strings.Split(c.self.About.Addr, ",")):
		return stores.OnThisHost
	}
	return stores.Elsewhere
}

// Processes are those of a server that was started here.
func (c Common) Processes(ctx context.Context) ([]int, error) {
	if c.self.Own == nil {
		return nil, server.ErrNotOurs
	}
	return c.self.Own.Processes(ctx)
}

// Confine lets a server that was started here run on some cores alone.
func (c Common) Confine(ctx context.Context, cores []int) error {
	if c.self.Own == nil {
		return server.ErrNotOurs
	}
	return c.self.Own.Confine(ctx, cores)
}

// Prepare takes the lease on scope, and counts the keys that exist under it already: a
// store of keys needs no room made. In a replica nothing is counted: its keys are those of
// its master.
func (c Common) Prepare(ctx context.Context, scope stores.Scope) (strays int64, err error) {
	if c.self.Replica {
		return 0, nil
	}
	if err := c.self.Enter(ctx, scope); err != nil {
		return 0, err
	}
	usage, err := c.self.Usage(ctx, scope)
	return usage.Keys, err
}

// Follows reports whether the server is a replica of another one: all that it holds comes
// from there, and nothing is to be written to it.
func (c Common) Follows() bool { return c.self.Replica }

// Wipe removes what is under a scope, and no more, and its lease. What it cannot remove is
// tried again by the next Prepare and by Close. From a replica its primary removes it.
func (c Common) Wipe(ctx context.Context, scope stores.Scope) error {
	switch {
	case c.self.Replica:
		return nil
	case scope == "":
		return fmt.Errorf("wipe %s: an empty scope", c.self.Kind)
	}
	return c.self.owed.note(string(scope), c.self.remove(ctx, string(scope)))
}

// Conn is a client as a [stores.Conn].
type Conn struct {
	Of  any
	End func() error
}

// Client implements [stores.Conn].
func (c Conn) Client() any { return c.Of }

// Close implements [stores.Conn].
func (c Conn) Close() error { return c.End() }

// The faults that can befall every kind of server that was started here.
const (
	Stopped     = "stopped"
	Restarted   = "restarted"
	nodeStopped = "node-stopped" // the first of several servers
)

// CanBreak implements [stores.Breakable].
func (c Common) CanBreak(_ context.Context, fault string) error {
	child, alone := c.self.Own.(*server.Child)
	_, several := c.self.Own.(server.Group)
	switch {
	case c.self.Own == nil || !c.self.Own.Local():
		return server.ErrNotOurs
	case fault == Stopped, fault == nodeStopped && several:
		return nil
	case fault != Restarted:
		return fmt.Errorf("there is no fault %s of %s", fault, c.self.Kind)
	case !alone || child == nil || c.self.Answers == nil:
		return fmt.Errorf("%s of this kind cannot be started again on its data", c.self.Kind)
	}
	return nil
}

// Break implements [stores.Breakable].
func (c Common) Break(ctx context.Context, fault string, _ stores.Scope) (mend func(context.Context) error, err error) {
	if err := c.CanBreak(ctx, fault); err != nil {
		return nil, err
	}
	if fault == Restarted {
		child := c.self.Own.(*server.Child)
		return func(ctx context.Context) error { return child.Again(ctx, c.self.Answers) }, child.Kill(ctx)
	}
	stopped := c.self.Own
	if fault == nodeStopped {
		stopped = stopped.(server.Group)[0]
	}
	all, err := stopped.Processes(ctx)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return server.Signal(all, false) }, server.Signal(all, true)
}

// payTimeout bounds how long what is owed is tried again for.
const payTimeout = 3 * time.Second

// owed remembers what could not be removed from a server, so that it is tried again.
// The zero value is ready.
type owed struct {
	mu    sync.Mutex
	names map[string]bool
}

// note remembers a name whose removal failed, forgets one that was removed, and returns
// the error.
func (o *owed) note(name string, err error) error {
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

// pending reports whether something is owed.
func (o *owed) pending() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.names) > 0
}

// pay calls remove with each name that is owed.
func (o *owed) pay(ctx context.Context, remove func(ctx context.Context, name string) error) (err error) {
	o.mu.Lock()
	names := slices.Collect(maps.Keys(o.names))
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, payTimeout)
	defer cancel()
	for _, name := range names {
		err = errors.Join(err, o.note(name, remove(ctx, name)))
	}
	return err
}
