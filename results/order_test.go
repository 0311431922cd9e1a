package results

import (
	"slices"
	"testing"
)

// TestStoresByClass: Redis first and SQL last, also if an earlier version left out the
// class of a store.
func TestStoresByClass(t *testing.T) {
	f := File{Stores: map[string]Store{
		"postgres.replica": {}, "redis.2": {}, "etcd": {}, "cockroach": {Class: ClassSQL}, "valkey": {Class: ClassRedis},
		"queue": {Class: ClassOther},
	}}
	want := []string{"redis.2", "valkey", "etcd", "queue", "cockroach", "postgres.replica"}
	if got := f.StoreNames(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
