package redis

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/stores"
)

var _ stores.Marker = (*Store)(nil)

// mark is the name of the key that a run would miss.
func mark(scope stores.Scope) string { return scope.Prefix() + "quotabench-mark" }

// Mark implements [stores.Marker] by a key without an expiry.
func (r *Store) Mark(ctx context.Context, scope stores.Scope) error {
	if err := r.admin.Set(ctx, mark(scope), 1, 0).Err(); err != nil {
		return fmt.Errorf("leave a mark in redis: %w", err)
	}
	return nil
}

// Marked implements [stores.Marker].
func (r *Store) Marked(ctx context.Context, scope stores.Scope) (bool, error) {
	n, err := r.admin.Exists(ctx, mark(scope)).Result()
	return n == 1, err
}

// Unmark implements [stores.Marker].
func (r *Store) Unmark(ctx context.Context, scope stores.Scope) error {
	return r.admin.Del(ctx, mark(scope)).Err()
}
