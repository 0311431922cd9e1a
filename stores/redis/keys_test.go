package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/stores/storetest"
)

// TestUsageWeighsKeys: a few keys are weighed one by one, with all that they hold, and
// very many by a part of them.
func TestUsageWeighsKeys(t *testing.T) {
	r := storetest.Redis(t)
	ctx := t.Context()
	scope := storetest.Scope(t)
	list := make([]any, 1000)
	for i := range list {
		list[i] = strings.Repeat("x", 100) // a few of them say nothing about the last one
	}
	list[999] = strings.Repeat("x", 1_000_000)
	if err := r.Admin().RPush(ctx, scope.Prefix()+"list", list...).Err(); err != nil {
		t.Fatal(err)
	}
	one, err := r.Usage(ctx, scope)
	if err != nil || one.Keys != 1 || one.Bytes < 1_099_900 || one.Bytes > 1_400_000 {
		t.Fatalf("usage %+v (%v), want one key of at least 1,099,900 bytes", one, err)
	}
	if err := r.Wipe(ctx, scope); err != nil {
		t.Fatal(err)
	}
	const keys, size = 24_000, 500
	pipe := r.Admin().Pipeline()
	for i := range keys {
		pipe.Set(ctx, fmt.Sprintf("%s%d", scope.Prefix(), i), strings.Repeat("x", size), 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Wipe(context.Background(), scope) }) // other tests list what is left
	all, err := r.Usage(ctx, scope)
	if of := all.Bytes / keys; err != nil || all.Keys != keys || of < size || of > 2*size {
		t.Errorf("usage %+v (%v), want %d keys of %d bytes and some", all, err, keys, size)
	}
}
