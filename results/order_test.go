package results

import (
	"github.com/quotabench/quotabench/internal/codes"
	"slices"
	"testing"
)

// TestStoresByClass: Redis first and SQL last, also if an earlier version left out the
// class of a store.
func TestStoresByClass(t *testing.T) {
	f := File{Stores: map[string]Store{
		"postgres.replica": {}, "redis.2": {}, "etcd": {}, "cockroach": {Class: codes.ClassSQL}, "valkey": {Class: codes.ClassRedis},
		"queue": {Class: codes.ClassOther},
	}}
	want := []string{"redis.2", "valkey", "etcd", "queue", "cockroach", "postgres.replica"}
	if got := f.StoreNames(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
