package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/stores"
)

var _ stores.Marker = (*Store)(nil)

// mark is the name of the key that a run would miss.
func mark(scope stores.Scope) string { return scope.Prefix() + "quotabench-mark" }

// Mark implements [stores.Marker] by a key.
func (e *Store) Mark(ctx context.Context, scope stores.Scope) error {
	if _, err := e.admin.Put(ctx, mark(scope), "1"); err != nil {
		return fmt.Errorf("leave a mark in etcd: %w", err)
	}
	return nil
}

// Marked implements [stores.Marker]. A server's term changes with its start, and with
// another leader.
func (e *Store) Marked(ctx context.Context, scope stores.Scope) (stores.Sign, error) {
	key := mark(scope)
	there := clientv3.Compare(clientv3.Version(key), ">", 0)
	response, err := e.admin.Txn(ctx).If(there).Then(clientv3.OpPut(key, "1")).Commit()
	if err != nil {
		return stores.Sign{}, err
	}
	return stores.Sign{There: response.Succeeded,
		Incarnation: fmt.Sprintf("%x/%d", response.Header.ClusterId, response.Header.RaftTerm)}, nil
}

// Unmark implements [stores.Marker].
func (e *Store) Unmark(ctx context.Context, scope stores.Scope) error {
	_, err := e.admin.Delete(ctx, mark(scope))
	return err
}
