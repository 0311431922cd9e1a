package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

var _ stores.Keeper = (*Store)(nil)

const (
	// family begins every key of every run.
	family = "quotabench:"
	// holdingsKey is a hash with a field for each scope that a process keeps: its
	// owner. It does not expire, so that what a killed process left is found by one
	// command. It goes with its last field.
	holdingsKey = family + "holdings"
	// leasePrefix begins a key for each process, which expires unless it is renewed.
	// No scope's prefix begins it: those end in a colon.
	leasePrefix = family + "lease-"
)

// leases are the scopes that this process keeps on a server that others use too.
type leases struct {
	held map[stores.Scope]bool
	// owed are those that could not be removed, and are to be.
	owed map[stores.Scope]bool
	stop context.CancelFunc // ends the renewals; nil where there are none
	done chan struct{}
}

// retryTimeout bounds how long what is owed is tried again for.
const retryTimeout = 3 * time.Second

// shared reports whether leases are kept: the server outlives this process.
func (r *Store) shared() bool { return !r.Owned() && !r.replica }

func leaseKey() string { return leasePrefix + server.Us().Run }

// Lease implements [stores.Keeper].
func (r *Store) Lease(ctx context.Context, scope stores.Scope) error {
	if !r.shared() {
		return nil
	}
	r.keeping.Lock()
	defer r.keeping.Unlock()
	err := r.enter(ctx, scope)
	if errors.Is(err, errInUse) {
		return fmt.Errorf("take a lease on %s: %w", scope.Prefix(), err)
	}
	if r.leases.held == nil {
		r.leases.held, r.leases.owed = map[stores.Scope]bool{}, map[stores.Scope]bool{}
	}
	r.leases.held[scope] = true
	if err != nil {
		r.leases.owed[scope] = true // it may be there although no answer came
		return fmt.Errorf("take a lease on %s: %w", scope.Prefix(), err)
	}
	if r.leases.stop == nil {
		r.startRenewals()
	}
	return nil
}

var errInUse = errors.New("it is in use by another run")

// enter writes the lease, and the scope's owner once that is there.
func (r *Store) enter(ctx context.Context, scope stores.Scope) error {
	us := server.Us().Encode()
	if err := r.admin.Set(ctx, leaseKey(), us, server.LeaseLife).Err(); err != nil {
		return err
	}
	fresh, err := r.admin.HSetNX(ctx, holdingsKey, string(scope), us).Result()
	r.leased.Add(2)
	if err != nil || fresh {
		return foreign(err)
	}
	entry, err := r.admin.HGet(ctx, holdingsKey, string(scope)).Result()
	r.leased.Add(1)
	if err != nil {
		return err
	}
	o, ok := server.ParseOwner(entry)
	if ok && o.Ours() {
		return nil
	}
	if h, err := r.holding(ctx, string(scope), entry); err != nil {
		return err
	} else if h.State == stores.HeldLive {
		return fmt.Errorf("%w (%s)", errInUse, h.Owner)
	}
	claimed, err := r.claim(ctx, scope, entry)
	if err == nil && !claimed {
		err = errInUse
	}
	if err != nil {
		return err
	}
	_, err = r.WipePrefix(ctx, scope.Prefix())
	return err
}

// foreign says whose key it is that has another type than runs give it.
func foreign(err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
		return fmt.Errorf("the key %s is not the hash that runs keep there: another program wrote it; remove it (DEL %s) and repeat (%w)", holdingsKey, holdingsKey, err)
	}
	return err
}

// claim makes this process the owner of a scope whose entry is still the given one.
func (r *Store) claim(ctx context.Context, scope stores.Scope, entry string) (claimed bool, err error) {
	err = r.admin.Watch(ctx, func(tx *goredis.Tx) error {
		claimed = false
		now, err := tx.HGet(ctx, holdingsKey, string(scope)).Result()
		if errors.Is(err, goredis.Nil) || err == nil && now != entry {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error {
			p.HSet(ctx, holdingsKey, string(scope), server.Us().Encode())
			return nil
		})
		claimed = err == nil
		return err
	}, holdingsKey)
	if errors.Is(err, goredis.TxFailedErr) {
		return false, nil // another process changed the hash; the next run tries again
	}
	return claimed, err
}

// startRenewals renews the lease from time to time. The caller holds keeping.
func (r *Store) startRenewals() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.leases.stop, r.leases.done = cancel, done
	go func() {
		defer close(done)
		for (clock.Wall{}).Sleep(ctx, server.LeaseRenewal) == nil {
			r.renew(ctx)
		}
	}()
}

// renew writes the lease and all entries anew: the server may have lost them. Where
// that fails it is tried again at the next renewal.
func (r *Store) renew(ctx context.Context) {
	us := server.Us().Encode()
	ctx, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	r.keeping.Lock() // until the end: what is released meanwhile must not come back
	defer r.keeping.Unlock()
	held := slices.Sorted(maps.Keys(r.leases.held))
	if len(held) == 0 {
		return
	}
	_, _ = r.admin.Pipelined(ctx, func(p goredis.Pipeliner) error {
		p.Set(ctx, leaseKey(), us, server.LeaseLife)
		r.leased.Add(1)
		for _, scope := range held {
			p.HSet(ctx, holdingsKey, string(scope), us)
			r.leased.Add(1)
		}
		return nil
	})
}

// release takes the scope off the list once nothing is left of it, and the lease
// with the last one.
func (r *Store) release(ctx context.Context, scope stores.Scope) error {
	r.keeping.Lock()
	defer r.keeping.Unlock()
	if !r.leases.held[scope] {
		return nil
	}
	if err := r.admin.HDel(ctx, holdingsKey, string(scope)).Err(); err != nil {
		return err
	}
	r.leased.Add(1)
	delete(r.leases.held, scope)
	delete(r.leases.owed, scope)
	if len(r.leases.held) > 0 {
		return nil
	}
	r.stopRenewals()
	r.leased.Add(1)
	return r.admin.Del(ctx, leaseKey()).Err()
}

// stopRenewals ends the renewals. The caller holds keeping.
func (r *Store) stopRenewals() {
	if r.leases.stop == nil {
		return
	}
	r.leases.stop()
	r.leases.stop = nil
}

// wiped notes how the removal of a scope ended.
func (r *Store) wiped(ctx context.Context, scope stores.Scope, err error) error {
	if err == nil {
		err = r.release(ctx, scope)
	}
	r.keeping.Lock()
	defer r.keeping.Unlock()
	if err != nil && r.leases.held[scope] {
		r.leases.owed[scope] = true
	}
	return err
}

// pay tries again to remove what could not be removed.
func (r *Store) pay(ctx context.Context) error {
	r.keeping.Lock()
	owed := slices.Sorted(maps.Keys(r.leases.owed))
	r.keeping.Unlock()
	for _, scope := range owed {
		_, err := r.WipePrefix(ctx, scope.Prefix())
		if err = r.wiped(ctx, scope, err); err != nil {
			return err // the others would take as long to fail
		}
	}
	return nil
}

// leave pays what is owed when the store is closed, and ends the renewals.
func (r *Store) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), retryTimeout)
	defer cancel()
	err := r.pay(ctx)
	r.keeping.Lock()
	r.stopRenewals()
	done := r.leases.done
	r.keeping.Unlock()
	if done != nil {
		<-done
	}
	if err != nil {
		return fmt.Errorf("%w: quotabench clean removes what is left", err)
	}
	return nil
}

// Holdings implements [stores.Keeper].
func (r *Store) Holdings(ctx context.Context, thorough bool) ([]stores.Holding, error) {
	if !r.shared() {
		return nil, nil
	}
	entries, err := r.admin.HGetAll(ctx, holdingsKey).Result()
	if err != nil {
		return nil, fmt.Errorf("look for what runs left: %w", foreign(err))
	}
	var out []stores.Holding
	for _, scope := range slices.Sorted(maps.Keys(entries)) {
		h, err := r.holding(ctx, scope, entries[scope])
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	if !thorough {
		return out, nil
	}
	counts := map[string]int64{}
	seen := map[string]bool{} // SCAN may show a key more than once
	err = r.scan(ctx, family, func(_ goredis.Cmdable, keys []string) error {
		for _, k := range keys {
			if scope, _, ok := strings.Cut(k[len(family):], ":"); ok && !seen[k] {
				seen[k] = true
				counts[scope]++
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for keys that begin with %s: %w", family, err)
	}
	for i := range out {
		out[i].Keys = counts[string(out[i].Scope)]
		delete(counts, string(out[i].Scope))
	}
	for _, scope := range slices.Sorted(maps.Keys(counts)) {
		s := stores.Scope(scope)
		out = append(out, stores.Holding{Scope: s, Name: s.Prefix(), State: stores.HeldUnknown, Keys: counts[scope]})
	}
	return out, nil
}

// holding describes an entry of the hash.
func (r *Store) holding(ctx context.Context, scope, entry string) (stores.Holding, error) {
	s := stores.Scope(scope)
	h := stores.Holding{Scope: s, Name: s.Prefix(), State: stores.HeldUnknown, Entry: entry}
	o, ok := server.ParseOwner(entry)
	if !ok {
		return h, nil
	}
	h.Owner, h.State = o.String(), stores.HeldDead
	renewed, err := r.renewed(ctx, o)
	if err != nil {
		return h, fmt.Errorf("look at the lease of %s: %w", h.Name, err)
	}
	if o.Lives(renewed) {
		h.State = stores.HeldLive
	}
	return h, nil
}

// renewed reports whether an owner's lease has not run out. On a server that has
// just started, which may have been away for longer than a lease lasts, none has.
func (r *Store) renewed(ctx context.Context, o server.Owner) (bool, error) {
	n, err := r.admin.Exists(ctx, leasePrefix+o.Run).Result()
	if err != nil || n > 0 {
		return n > 0, err
	}
	f, err := r.serverInfo(ctx)
	if err != nil {
		return false, err
	}
	up, err := strconv.ParseInt(f["uptime_in_seconds"], 10, 64)
	return err == nil && time.Duration(up)*time.Second < server.JustStarted, nil
}

// Discard implements [stores.Keeper].
func (r *Store) Discard(ctx context.Context, h stores.Holding) (int64, error) {
	if !r.shared() || h.State == stores.HeldLive {
		return 0, nil
	}
	if h.Entry != "" {
		claimed, err := r.claim(ctx, h.Scope, h.Entry)
		if err != nil {
			return 0, fmt.Errorf("remove %s: %w", h.Name, err)
		}
		if !claimed {
			return 0, nil
		}
	}
	n, err := r.WipePrefix(ctx, h.Scope.Prefix())
	if err != nil || h.Entry == "" {
		return n, err
	}
	if o, ok := server.ParseOwner(h.Entry); ok { // whom nobody needs to look up any more
		err = r.admin.Del(ctx, leasePrefix+o.Run).Err()
	}
	return n, errors.Join(err, r.admin.HDel(ctx, holdingsKey, string(h.Scope)).Err())
}
