package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/stores"
)

var _ stores.Marker = (*Store)(nil)

// mark is the node that a run would miss.
func mark(scope stores.Scope) string { return "/" + scope.Schema() + "_mark" }

// Mark implements [stores.Marker] by a node.
func (z *Store) Mark(ctx context.Context, scope stores.Scope) error {
	_, err := within(ctx, func() (string, error) {
		return z.admin.Create(mark(scope), nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	})
	if err != nil {
		return fmt.Errorf("leave a mark in zookeeper: %w", err)
	}
	return nil
}

// Marked implements [stores.Marker]. A server does not tell which one it is.
func (z *Store) Marked(ctx context.Context, scope stores.Scope) (stores.Sign, error) {
	_, err := within(ctx, func() (*zk.Stat, error) { return z.admin.Set(mark(scope), nil, -1) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return stores.Sign{}, err
	}
	return stores.Sign{There: err == nil}, nil
}

// Unmark implements [stores.Marker].
func (z *Store) Unmark(ctx context.Context, scope stores.Scope) error {
	_, err := within(ctx, func() (struct{}, error) { return struct{}{}, z.admin.Delete(mark(scope), -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// within makes calls of a client that knows no contexts, and gives them up with ctx:
// they end when the server answers, or with their connection.
func within[T any](ctx context.Context, call func() (T, error)) (v T, err error) {
	if err := ctx.Err(); err != nil {
		return v, err
	}
	if ctx.Done() == nil {
		return call()
	}
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := call()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}
