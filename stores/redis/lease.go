package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
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

func leaseKey() string { return leasePrefix + server.Us().Run }

// board is the server as a [leases.Board]. It counts its commands, which are not a
// strategy's: those that are sent next to a run.
type board struct{ *Store }

// Name implements [leases.Board].
func (board) Name(scope stores.Scope) string { return scope.Prefix() }

// Entries implements [leases.Board].
func (b board) Entries(ctx context.Context) (out []leases.Entry, err error) {
	held, err := b.admin.HGetAll(ctx, holdingsKey).Result()
	if err != nil {
		return nil, foreign(err)
	}
	for scope, text := range held {
		entry := leases.Entry{Scope: stores.Scope(scope), Text: text}
		if owner, ok := server.ParseOwner(text); ok {
			entry.Renewed, err = b.renewed(ctx, owner)
			if err != nil {
				return nil, fmt.Errorf("look at the lease of %s: %w", entry.Scope.Prefix(), err)
			}
		}
		out = append(out, entry)
	}
	return out, nil
}

// renewed reports whether an owner's lease has not run out. On a server that has
// just started, which may have been away for longer than a lease lasts, none has.
func (b board) renewed(ctx context.Context, owner server.Owner) (bool, error) {
	n, err := b.admin.Exists(ctx, leasePrefix+owner.Run).Result()
	if err != nil || n > 0 {
		return n > 0, err
	}
	f, err := info(ctx, b.admin)
	if err != nil {
		return false, err
	}
	up, err := strconv.ParseInt(f["uptime_in_seconds"], 10, 64)
	return err == nil && time.Duration(up)*time.Second < server.JustStarted, nil
}

// foreign says whose key it is that has another type than runs give it.
func foreign(err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
		return fmt.Errorf("the key %[1]s is not the hash that runs keep there: another program wrote it; "+
			"remove it (DEL %[1]s) and repeat (%[2]w)", holdingsKey, err)
	}
	return err
}

// Enter implements [leases.Board].
func (b board) Enter(ctx context.Context, old leases.Entry, text string) (done bool, err error) {
	if old.Text == "" {
		b.leased.Add(1)
		done, err = b.admin.HSetNX(ctx, holdingsKey, string(old.Scope), text).Result()
		return done, foreign(err)
	}
	err = b.admin.Watch(ctx, func(tx *goredis.Tx) error {
		done = false
		now, err := tx.HGet(ctx, holdingsKey, string(old.Scope)).Result()
		if errors.Is(err, goredis.Nil) || err == nil && now != old.Text {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipeliner goredis.Pipeliner) error {
			if dead, ok := server.ParseOwner(old.Text); ok {
				pipeliner.Del(ctx, leasePrefix+dead.Run) // its process has ended, and the lease may still run
			}
			return pipeliner.HSet(ctx, holdingsKey, string(old.Scope), text).Err()
		})
		done = err == nil
		return err
	}, holdingsKey)
	if errors.Is(err, goredis.TxFailedErr) {
		return false, nil // another process changed the hash; the next run tries again
	}
	return done, err
}

// Renew implements [leases.Board].
func (b board) Renew(ctx context.Context, scopes []stores.Scope) error {
	us := server.Us().Encode()
	b.leased.Add(int64(1 + len(scopes)))
	_, err := b.admin.Pipelined(ctx, func(pipeliner goredis.Pipeliner) error {
		pipeliner.Set(ctx, leaseKey(), us, server.LeaseLife)
		for _, scope := range scopes {
			pipeliner.HSet(ctx, holdingsKey, string(scope), us)
		}
		return nil
	})
	return foreign(err)
}

// Leave implements [leases.Board]. The lease goes first: a process that is killed in between leaves an entry, which the
// next start finds, and no lease, which it would not.
func (b board) Leave(ctx context.Context, scope stores.Scope, last bool) error {
	if last {
		b.leased.Add(1)
		if err := b.admin.Del(ctx, leaseKey()).Err(); err != nil {
			return err
		}
	}
	b.leased.Add(1)
	return b.admin.HDel(ctx, holdingsKey, string(scope)).Err()
}

// Clear implements [leases.Board].
func (b board) Clear(ctx context.Context, scope stores.Scope) (int64, error) {
	return b.WipePrefix(ctx, scope.Prefix())
}

// Count implements [leases.Board].
func (b board) Count(ctx context.Context, _ []stores.Scope) (map[stores.Scope]int64, error) {
	counts := map[stores.Scope]int64{}
	seen := map[string]bool{} // SCAN may show a key more than once
	err := b.scan(ctx, family, func(_ goredis.Cmdable, keys []string) error {
		for _, k := range keys {
			if scope, _, ok := strings.Cut(k[len(family):], ":"); ok && !seen[k] {
				seen[k] = true
				counts[stores.Scope(scope)]++
			}
		}
		return nil
	})
	return counts, err
}
