package zookeeper

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/internal/kit/cancel"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Marker = (*Store)(nil)

// mark is the node that a run would miss.
func mark(scope stores.Scope) string { return "/" + scope.Schema() + "_mark" }

// Mark implements [stores.Marker] by a node.
func (z *Store) Mark(ctx context.Context, scope stores.Scope) error {
	_, err := cancel.Call(ctx, func() (string, error) {
		return z.admin.Create(mark(scope), nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	})
	return format.Wrapf(err, "leave a mark in zookeeper")
}

// Marked implements [stores.Marker]. A server does not tell which one it is.
func (z *Store) Marked(ctx context.Context, scope stores.Scope) (stores.Sign, error) {
	_, err := cancel.Call(ctx, func() (*zk.Stat, error) { return z.admin.Set(mark(scope), nil, -1) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return stores.Sign{}, err
	}
	return stores.Sign{There: err == nil}, nil
}

// Unmark implements [stores.Marker].
func (z *Store) Unmark(ctx context.Context, scope stores.Scope) error {
	_, err := cancel.Call(ctx, func() (struct{}, error) { return struct{}{}, z.admin.Delete(mark(scope), -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
