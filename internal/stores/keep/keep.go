// Package keep leases what this process keeps on servers that others use too, for kinds
// of stores that can write an entry only if it is as it was read. It has what they share
// of [stores.Keeper]; a [Board] is what they do not.
package keep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/stores/server"
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

// Keeping is what this process keeps on a board. Its zero value keeps nothing; New makes
// one that does.
type Keeping struct {
	board Board

	mu   sync.Mutex // from a change of the entries until it is noted
	held map[stores.Scope]bool
	stop context.CancelFunc // ends the renewals; nil if there are none
	done chan struct{}
}

// New keeps leases on a board, which outlives this process.
func New(b Board) *Keeping { return &Keeping{board: b, held: map[stores.Scope]bool{}} }

// Lease is [stores.Keeper]'s. What may be there although no answer came is owed from then
// on. It does nothing on nil, which stands for a server of this process alone, as the
// other methods do.
func (k *Keeping) Lease(ctx context.Context, scope stores.Scope, owed *server.Owed) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.enter(ctx, scope)
	if errors.Is(err, errInUse) {
		return fmt.Errorf("take a lease on %s: %w", k.board.Name(scope), err)
	}
	k.held[scope] = true
	if err != nil {
		return owed.Note(string(scope), fmt.Errorf("take a lease on %s: %w", k.board.Name(scope), err))
	}
	k.start()
	return nil
}

func (k *Keeping) enter(ctx context.Context, scope stores.Scope) error {
	if err := k.board.Renew(ctx, nil); err != nil {
		return err
	}
	us := server.Us().Encode()
	if done, err := k.board.Enter(ctx, Entry{Scope: scope}, us); err != nil || done {
		return err
	}
	all, err := k.board.Entries(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Scope == scope })
	if i < 0 { // it has gone, or it is no run's
		return errInUse
	}
	switch o, _ := server.ParseOwner(all[i].Text); {
	case o.Ours():
		return nil
	case k.judge(all[i]).State == stores.HeldLive:
		return fmt.Errorf("%w (%s)", errInUse, o)
	}
	done, err := k.board.Enter(ctx, all[i], us)
	if err == nil && !done {
		err = errInUse
	}
	if err == nil {
		_, err = k.board.Clear(ctx, scope)
	}
	return err
}

// start has the leases renewed from time to time. The caller holds mu.
func (k *Keeping) start() {
	if k.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	k.stop, k.done = cancel, done
	go func() {
		defer close(done)
		for (clock.Wall{}).Sleep(ctx, server.LeaseRenewal) == nil {
			k.Renew(ctx)
		}
	}()
}

// Renew renews the leases now. If that fails it is tried again later.
func (k *Keeping) Renew(ctx context.Context) {
	if k == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	k.mu.Lock() // until the end: what is released meanwhile must not come back
	defer k.mu.Unlock()
	if len(k.held) > 0 {
		_ = k.board.Renew(ctx, slices.Sorted(maps.Keys(k.held)))
	}
}

// Release ends the lease on a scope that nothing is left of.
func (k *Keeping) Release(ctx context.Context, scope stores.Scope) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.held[scope] {
		return nil
	}
	last := len(k.held) == 1
	if err := k.board.Leave(ctx, scope, last); err != nil {
		return fmt.Errorf("give up the lease on %s: %w", k.board.Name(scope), err)
	}
	delete(k.held, scope)
	if last && k.stop != nil {
		k.stop()
		k.stop = nil
	}
	return nil
}

// stopRenewals ends them, and waits until none is under way.
func (k *Keeping) stopRenewals() {
	k.mu.Lock()
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
	done := k.done
	k.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Holdings is [stores.Keeper]'s.
func (k *Keeping) Holdings(ctx context.Context, thorough bool) ([]stores.Holding, error) {
	if k == nil {
		return nil, nil
	}
	all, err := k.board.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for what runs left: %w", err)
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(string(a.Scope), string(b.Scope)) })
	var out []stores.Holding
	var entered []stores.Scope
	for _, e := range all {
		out, entered = append(out, k.judge(e)), append(entered, e.Scope)
	}
	if !thorough {
		return out, nil
	}
	counts, err := k.board.Count(ctx, entered)
	if err != nil {
		return nil, fmt.Errorf("look for what has no lease: %w", err)
	}
	for i := range out {
		out[i].Keys = counts[out[i].Scope]
		delete(counts, out[i].Scope)
	}
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, stores.Holding{Scope: s, Name: k.board.Name(s), State: stores.HeldUnknown, Keys: counts[s]})
	}
	return out, nil
}

// judge says whose an entry is, and whether that process lives.
func (k *Keeping) judge(e Entry) stores.Holding {
	h := stores.Holding{Scope: e.Scope, Name: k.board.Name(e.Scope), State: stores.HeldUnknown, Entry: e.Text}
	if o, ok := server.ParseOwner(e.Text); ok {
		h.Owner, h.State = o.String(), stores.HeldDead
		if o.Lives(e.Renewed) {
			h.State = stores.HeldLive
		}
	}
	return h
}

// Discard is [stores.Keeper]'s.
func (k *Keeping) Discard(ctx context.Context, h stores.Holding) (removed int64, err error) {
	if k == nil || h.State == stores.HeldLive {
		return 0, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("remove %s: %w", h.Name, err)
		}
	}()
	if h.Entry != "" {
		all, err := k.board.Entries(ctx)
		if err != nil {
			return 0, err
		}
		i := slices.IndexFunc(all, func(e Entry) bool { return e.Scope == h.Scope && e.Text == h.Entry })
		if i < 0 || k.judge(all[i]).State == stores.HeldLive {
			return 0, nil
		}
		if done, err := k.board.Enter(ctx, all[i], server.Us().Encode()); err != nil || !done {
			return 0, err
		}
	}
	if removed, err = k.board.Clear(ctx, h.Scope); err == nil && h.Entry != "" {
		err = k.board.Leave(ctx, h.Scope, false)
	}
	return removed, err
}
