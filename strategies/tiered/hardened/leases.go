package hardened

import (
	"encoding/binary"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// The shape of the filter is the record's.
const (
	filterMembers = 100_000
	filterRate    = 0.001
	fewestMembers = 64
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

func newLeases(c quota.Clock, span int64, subjects int) *leases {
	l := &leases{clock: c, span: span, exact: map[leaseKey]lease{}}
	members := uint(filterMembers)
	if subjects > 0 {
		members = min(members, max(fewestMembers, uint(subjects)))
	}
	l.bits = bloom.NewWithEstimates(members, filterRate)
	return l
}

// rejects reports whether a request of so many units is known not to fit.
func (l *leases) rejects(k leaseKey, units int64) bool {
	if l.span == 0 {
		return false
	}
	now := l.clock.Now().UnixNano()
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], k.hash())
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.slot != now/l.span || !l.bits.Test(buf[:]) {
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
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], k.hash())
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
	l.bits.Add(buf[:])
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

// hash is FNV-1a, which needs no memory, over what tells accounts apart.
func (k *leaseKey) hash() uint64 {
	h := uint64(14695981039346656037)
	mix := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for i := range len(k.subject) {
		mix(k.subject[i])
	}
	mix(0xff) // no byte of UTF-8
	for i := range len(k.policy) {
		mix(k.policy[i])
	}
	for _, n := range [2]int64{k.window, k.limit} {
		for range 8 {
			mix(byte(n))
			n >>= 8
		}
	}
	return h
}
