package zookeeper

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/cancel"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

const (
	// family begins the name of every node of every run.
	family = "quotabench_"
	// holdingPrefix begins a node for each scope that a process keeps: its owner. No node
	// of a scope begins so: those have no hyphen.
	holdingPrefix = "quotabench-holding-"
	// leasePrefix begins a node for each process, which goes with its session. ZooKeeper
	// keeps sessions for a while after a client is gone, and over a restart of its own.
	leasePrefix = "quotabench-lease-"
)

// board is the server as a [leases.Board].
type board struct{ *Store }

// Name implements [leases.Board].
func (board) Name(scope stores.Scope) string { return scope.Schema() }

// Entries implements [leases.Board].
func (b board) Entries(ctx context.Context) ([]leases.Entry, error) {
	return cancel.Call(ctx, func() (out []leases.Entry, err error) {
		names, _, err := b.admin.Children("/")
		if err != nil {
			return nil, err
		}
		renewed := map[string]bool{}
		for _, name := range names {
			if run, ok := strings.CutPrefix(name, leasePrefix); ok {
				renewed[run] = true
			}
		}
		for _, name := range names {
			scope, ok := strings.CutPrefix(name, holdingPrefix)
			if !ok {
				continue
			}
			text, stat, err := b.admin.Get("/" + name)
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			if err != nil {
				return nil, err
			}
			owner, _ := server.ParseOwner(string(text))
			out = append(out, leases.Entry{Scope: stores.Scope(scope), Text: string(text), Version: int64(stat.Version),
				Renewed: renewed[owner.Run]})
		}
		return out, nil
	})
}

// Enter implements [leases.Board].
func (b board) Enter(ctx context.Context, old leases.Entry, text string) (bool, error) {
	return cancel.Call(ctx, func() (bool, error) {
		var err error
		if path := "/" + holdingPrefix + string(old.Scope); old.Text == "" {
			_, err = b.admin.Create(path, []byte(text), zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		} else {
			_, err = b.admin.Set(path, []byte(text), int32(old.Version))
		}
		if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
			return false, nil
		}
		return err == nil, err
	})
}

// Renew implements [leases.Board]. A session that goes on needs nothing: a new one needs a
// node of its own.
func (b board) Renew(ctx context.Context, scopes []stores.Scope) error {
	owner := server.Us()
	_, err := cancel.Call(ctx, func() (string, error) {
		return b.admin.Create("/"+leasePrefix+owner.Run, []byte(owner.Encode()), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	})
	if errors.Is(err, zk.ErrNodeExists) {
		err = nil
	}
	for _, scope := range scopes {
		if err == nil {
			_, err = b.Enter(ctx, leases.Entry{Scope: scope}, owner.Encode())
		}
	}
	return err
}

// Leave implements [leases.Board].
func (b board) Leave(ctx context.Context, scope stores.Scope, last bool) error {
	var gone []string
	if last { // before the entry, by which the next start finds what a killed process left
		gone = append(gone, "/"+leasePrefix+server.Us().Run)
	}
	gone = append(gone, "/"+holdingPrefix+string(scope))
	for _, path := range gone {
		_, err := cancel.Call(ctx, func() (struct{}, error) { return struct{}{}, b.admin.Delete(path, -1) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

// Clear implements [leases.Board].
func (b board) Clear(ctx context.Context, scope stores.Scope) (int64, error) {
	return cancel.Call(ctx, func() (n int64, err error) {
		roots, err := b.roots(ctx, scope)
		for _, root := range roots {
			removed, rerr := b.remove(ctx, root)
			n = n + removed
			err = errors.Join(err, rerr)
		}
		return n, err
	})
}

// Count implements [leases.Board].
func (b board) Count(ctx context.Context, entered []stores.Scope) (map[stores.Scope]int64, error) {
	return cancel.Call(ctx, func() (map[stores.Scope]int64, error) {
		names, _, err := b.admin.Children("/")
		if err != nil {
			return nil, err
		}
		counts := map[stores.Scope]int64{}
		for _, name := range names {
			rest, ok := strings.CutPrefix(name, family)
			if !ok {
				continue
			}
			children, _, err := b.admin.Children("/" + name)
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				return nil, err
			}
			counts[cluster.Within(rest, entered)] += 1 + int64(len(children))
		}
		return counts, nil
	})
}
