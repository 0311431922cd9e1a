package hardened

import (
	"encoding/binary"
	"hash/fnv"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/tiered"
)

// lease lets an instance reject requests of that many units or more until a moment,
// in nanoseconds of its clock since 1970.
type lease struct {
	units, until int64
}

// leaseKey is an account without what follows from it.
type leaseKey struct {
	subject quota.Subject
	policy  string
	window  int64
	limit   int64
}

func (a *account) leaseKey() leaseKey { return leaseKey{a.subject, a.policy, a.window, a.limit} }

// leases are an instance's accounts that have used up their quota: a Bloom filter,
// and behind it the table that says which of its finds are true. Both are emptied
// after each span of the clock, which bounds them by what an instance can be
// rejected for in one span; what is lost early is asked for again.
type leases struct {
	clock quota.Clock
	span  int64 // nanoseconds; 0 is none

	mu    sync.RWMutex
	slot  int64
	bits  *bloom.BloomFilter
	exact map[leaseKey]lease

	hits, falsePositives strategies.Tally
}

// newLeases has a filter of the record's shape.
func newLeases(clock quota.Clock, span int64, subjects int) *leases {
	return &leases{
		clock: clock, span: span, exact: map[leaseKey]lease{},
		bits: bloom.NewWithEstimates(tiered.FilterMembers(subjects), tiered.FilterRate),
	}
}

// rejects reports whether a request of so many units is known not to fit.
func (l *leases) rejects(k leaseKey, units int64) bool {
	if l.span == 0 {
		return false
	}
	now := l.clock.Now().UnixNano()
	sum := k.hash()
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.slot != now/l.span || !l.bits.Test(sum[:]) {
		return false
	}
	known, ok := l.exact[k]
	if !ok {
		l.falsePositives.Add(1)
		return false
	}
	if units < known.units || now >= known.until {
		return false
	}
	l.hits.Add(1)
	return true
}

// add remembers that a request of so many units did not fit.
func (l *leases) add(k leaseKey, units, until int64) {
	now := l.clock.Now().UnixNano()
	if l.span == 0 || until <= now {
		return
	}
	sum := k.hash()
	l.mu.Lock()
	defer l.mu.Unlock()
	if slot := now / l.span; slot != l.slot {
		l.slot = slot
		l.bits.ClearAll()
		clear(l.exact)
	}
	if old, ok := l.exact[k]; ok && old.units < units && now < old.until {
		return
	}
	l.bits.Add(sum[:])
	l.exact[k] = lease{units, until}
}

// bytes is how large the filter's bits are.
func (l *leases) bytes() int64 { return int64(8 * len(l.bits.BitSet().Words())) }

// members is how many accounts are remembered.
func (l *leases) members() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return int64(len(l.exact))
}

// hash is FNV-1a over what tells accounts apart. It needs no memory unless names are long.
func (k *leaseKey) hash() (sum [8]byte) {
	text := append(make([]byte, 0, 128), k.subject...)
	text = append(text, 0xff) // no byte of UTF-8
	text = append(text, k.policy...)
	text = binary.LittleEndian.AppendUint64(text, uint64(k.window))
	text = binary.LittleEndian.AppendUint64(text, uint64(k.limit))
	hash64 := fnv.New64a()
	_, _ = hash64.Write(text)
	binary.LittleEndian.PutUint64(sum[:], hash64.Sum64())
	return sum
}
