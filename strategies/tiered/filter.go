package tiered

import (
	"sync"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/quotabench/quotabench/quota"
)

// The record's filter: this many members at this rate of false positives. It
// does not grow, so that more members raise the rate.
const (
	filterMembers = 100_000
	filterRate    = 0.001
)

// filter is one instance's set of agents over quota. The underlying filter is
// not safe for concurrent use, hence the lock: tests share it.
//
// The record's listing replaces a global variable, which its language does in
// one step. Here the new filter is built aside and the lock is taken for the
// assignment alone, so that callers wait for nothing longer than that.
type filter struct {
	mu   sync.RWMutex
	bits *bloom.BloomFilter
}

func newFilter() *filter { return &filter{bits: emptyBits()} }

func emptyBits() *bloom.BloomFilter { return bloom.NewWithEstimates(filterMembers, filterRate) }

// test reports whether s is a member, or a false positive.
func (f *filter) test(s quota.Subject) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.bits.TestString(string(s))
}

// rebuild replaces the members and reports whether that made a difference. What
// was added to the old filter since the members were read is forgotten.
func (f *filter) rebuild(members []string) (changed bool) {
	bits := emptyBits()
	for _, m := range members {
		bits.AddString(m)
	}
	f.mu.Lock()
	old := f.bits
	f.bits = bits
	f.mu.Unlock()
	return !old.Equal(bits)
}
