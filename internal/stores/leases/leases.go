// Package leases leases what this process keeps on servers that others use too, for kinds
// of stores that can write an entry only if it is as it was read. It has what they share
// of [stores.Keeper]; a [Board] is what they do not.
package leases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/stores"
)

// renewTimeout bounds one renewal.
const renewTimeout = 3 * time.Second

var errInUse = errors.New("it is in use by another run")

// Entry is the lease of one scope, as the server has it.
type Entry struct {
	Scope stores.Scope
	// Text is the owner, see [server.Owner]; empty if the scope has no entry.
	Text string
	// Version changes with each writing of the entry.
	Version int64
	// Renewed reports whether the owner's lease has not run out.
	Renewed bool
}

// Board is a server on which processes enter what they keep.
type Board interface {
	// Name is what the names of all that is under a scope begin with.
	Name(scope stores.Scope) string
	// Entries reads all of them.
	Entries(ctx context.Context) ([]Entry, error)
	// Enter makes text the owner of the scope of old, if that has not changed since it
	// was read.
	Enter(ctx context.Context, old Entry, text string) (done bool, err error)
	// Renew renews the lease of this process, and puts back those entries of its scopes
	// that the server has lost.
	Renew(ctx context.Context, scopes []stores.Scope) error
	// Leave removes the entry of a scope, and with the last one the lease of this process.
	Leave(ctx context.Context, scope stores.Scope, last bool) error
	// Clear removes what is under a scope, its entry apart, and counts it.
	Clear(ctx context.Context, scope stores.Scope) (int64, error)
	// Count counts what there is under each scope, also of those that have no entry.
	Count(ctx context.Context, entered []stores.Scope) (map[stores.Scope]int64, error)
}

// Share keeps leases on the board, which outlives this process, from now on.
func (s *Self) Share(board Board) {
	s.board = board
	s.held = map[stores.Scope]bool{}
}

// Shared reports whether leases are kept: not for a server of this process alone.
func (s *Self) Shared() bool { return s.board != nil }

// Lease implements [stores.Keeper]. What may be there although no answer came is owed from
// then on.
func (c Common) Lease(ctx context.Context, scope stores.Scope) error {
	self := c.self
	if !self.Shared() {
		return nil
	}
	self.mu.Lock()
	defer self.mu.Unlock()
	err := self.enter(ctx, scope)
	if errors.Is(err, errInUse) {
		return fmt.Errorf("take a lease on %s: %w", self.board.Name(scope), err)
	}
	self.held[scope] = true
	if err != nil {
		return self.owed.note(string(scope), fmt.Errorf("take a lease on %s: %w", self.board.Name(scope), err))
	}
	self.start()
	return nil
}

func (s *Self) enter(ctx context.Context, scope stores.Scope) error {
	if err := s.board.Renew(ctx, nil); err != nil {
		return err
	}
	us := server.Us().Encode()
	if done, err := s.board.Enter(ctx, Entry{Scope: scope}, us); err != nil || done {
		return err
	}
	all, err := s.board.Entries(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(entry Entry) bool { return entry.Scope == scope })
	if i < 0 { // it has gone, or it is no run's
		return errInUse
	}
	switch owner, _ := server.ParseOwner(all[i].Text); {
	case owner.Ours():
		return nil
	case s.judge(all[i]).State == stores.HeldLive:
		return fmt.Errorf("%w (%s)", errInUse, owner)
	}
	done, err := s.board.Enter(ctx, all[i], us)
	if err == nil && !done {
		err = errInUse
	}
	if err == nil {
		_, err = s.board.Clear(ctx, scope)
	}
	return err
}

// start has the leases renewed from time to time. The caller holds mu.
func (s *Self) start() {
	if s.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.stop = cancel
	s.done = done
	go func() {
		defer close(done)
		for (clock.Wall{}).Sleep(ctx, server.LeaseRenewal) == nil {
			s.Renew(ctx)
		}
	}()
}

// Renew renews the leases now. If that fails it is tried again later.
func (s *Self) Renew(ctx context.Context) {
	if !s.Shared() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	s.mu.Lock() // until the end: what is released meanwhile must not come back
	defer s.mu.Unlock()
	if len(s.held) > 0 {
		_ = s.board.Renew(ctx, slices.Sorted(maps.Keys(s.held)))
	}
}

// release ends the lease on a scope that nothing is left of.
func (s *Self) release(ctx context.Context, scope stores.Scope) error {
	if !s.Shared() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held[scope] {
		return nil
	}
	last := len(s.held) == 1
	if err := s.board.Leave(ctx, scope, last); err != nil {
		return fmt.Errorf("give up the lease on %s: %w", s.board.Name(scope), err)
	}
	delete(s.held, scope)
	if last && s.stop != nil {
		s.stop()
		s.stop = nil
	}
	return nil
}

// stopRenewals ends them, and waits until none is under way.
func (s *Self) stopRenewals() {
	s.mu.Lock()
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	done := s.done
	s.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Holdings implements [stores.Keeper].
func (c Common) Holdings(ctx context.Context, thorough bool) ([]stores.Holding, error) {
	self := c.self
	if !self.Shared() {
		return nil, nil
	}
	all, err := self.board.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for what runs left: %w", err)
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(string(a.Scope), string(b.Scope)) })
	var out []stores.Holding
	var entered []stores.Scope
	for _, entry := range all {
		out = append(out, self.judge(entry))
		entered = append(entered, entry.Scope)
	}
	if !thorough {
		return out, nil
	}
	counts, err := self.board.Count(ctx, entered)
	if err != nil {
		return nil, fmt.Errorf("look for what has no lease: %w", err)
	}
	for i := range out {
		out[i].Keys = counts[out[i].Scope]
		delete(counts, out[i].Scope)
	}
	for _, scope := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, stores.Holding{Scope: scope, Name: self.board.Name(scope), State: stores.HeldUnknown,
			Keys: counts[scope]})
	}
	return out, nil
}

// judge says whose an entry is, and whether that process lives.
func (s *Self) judge(entry Entry) stores.Holding {
	holding := stores.Holding{Scope: entry.Scope, Name: s.board.Name(entry.Scope), State: stores.HeldUnknown,
		Entry: entry.Text}
	if owner, ok := server.ParseOwner(entry.Text); ok {
		holding.Owner = owner.String()
		holding.State = stores.HeldDead
		if owner.Lives(entry.Renewed) {
			holding.State = stores.HeldLive
		}
	}
	return holding
}

// Discard implements [stores.Keeper].
func (c Common) Discard(ctx context.Context, holding stores.Holding) (removed int64, err error) {
	self := c.self
	if !self.Shared() || holding.State == stores.HeldLive {
		return 0, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("remove %s: %w", holding.Name, err)
		}
	}()
	if holding.Entry != "" {
		all, err := self.board.Entries(ctx)
		if err != nil {
			return 0, err
		}
		i := slices.IndexFunc(all, func(entry Entry) bool {
			return entry.Scope == holding.Scope && entry.Text == holding.Entry
		})
		if i < 0 || self.judge(all[i]).State == stores.HeldLive {
			return 0, nil
		}
		if done, err := self.board.Enter(ctx, all[i], server.Us().Encode()); err != nil || !done {
			return 0, err
		}
	}
	removed, err = self.board.Clear(ctx, holding.Scope)
	if err == nil && holding.Entry != "" {
		err = self.board.Leave(ctx, holding.Scope, false)
	}
	return removed, err
}
