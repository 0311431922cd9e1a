package tiered

import (
	"hash/fnv"
	"slices"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/quotabench/quotabench/quota"
)

// The record's filter: this many members at this rate of false positives.
const (
	filterMembers = 100_000
	FilterRate    = 0.001
	// fewestMembers is the least that a filter is made for, in 115 bytes.
	fewestMembers = 64
)

// FilterMembers is how many members a filter is made for: the record's number, or less if
// there will never be that many subjects. An explorer makes a filter for every schedule that
// it tries.
func FilterMembers(subjects int) uint {
	if subjects <= 0 {
		return filterMembers
	}
	return min(filterMembers, max(fewestMembers, uint(subjects)))
}

// How a scalable filter grows. The record asks for the library's large steps;
// the ratio is the one that its authors found to cost the least space.
const (
	layerGrowth     = 4
	layerTightening = 0.9
)

// filter is one instance's set of agents over quota. The underlying filters are
// not safe for concurrent use, hence the lock: tests share it, and adding takes
// it alone.
//
// The record's listing replaces a global variable, which its language does in
// one step. Here the new filter is built aside and the lock is taken for the
// assignment alone, so callers wait for nothing longer than that.
type filter struct {
	shape shape
	mu    sync.RWMutex
	bits  *layers
}

// shape is what a filter is made for. Its first layer has room for that many
// members.
type shape struct {
	grows   bool
	members uint
}

func newFilter(s shape) *filter { return &filter{shape: s, bits: newLayers(s, 0)} }

// test reports whether s is a member, or a false positive.
func (f *filter) test(subject quota.Subject) bool {
	found, _ := f.look(subject)
	return found
}

// look is test, and says of what is found whether it was ever added. No decision
// depends on that: it counts false positives.
func (f *filter) look(subject quota.Subject) (found, added bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.bits.test(string(subject)) {
		return false, false
	}
	_, added = f.bits.added[hash(string(subject))]
	return true, added
}

// bytes is how large the bits of all layers are.
func (f *filter) bytes() (n int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, filter := range f.bits.list {
		n += int64(8 * len(filter.BitSet().Words()))
	}
	return n
}

// add makes s a member until the next rebuild.
func (f *filter) add(subject quota.Subject) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bits.add(string(subject))
}

// rebuild replaces the members and reports whether that made a difference. What
// was added to the old filter since the members were read is forgotten.
func (f *filter) rebuild(members []string) (changed bool) {
	bits := newLayers(f.shape, len(members))
	for _, text := range members {
		bits.add(text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	changed = f.bits.digest != bits.digest
	f.bits = bits
	return changed
}

// layers is a Bloom filter. A fixed one is a single layer, and more members than
// it was made for raise its rate of false positives. A scalable one is that of
// Almeida et al. (2007): a full layer is followed by a larger one with a tighter
// rate, so the rates of all layers add up to less than the whole one's,
// however many there are.
type layers struct {
	shape
	// list has the oldest layer first; only the last takes new members, and room
	// is how many more.
	list []*bloom.BloomFilter
	room uint
	// digest sums up what was added, in whatever order. Comparing bits instead
	// would keep callers who add to them waiting.
	digest uint64
	// added holds the hashes of what was added, so that false positives can be
	// counted. It belongs to the measurement: the record's filter has nothing like it.
	added map[uint64]struct{}
}

// newLayers has room for the hashes of so many members before it needs more memory.
func newLayers(s shape, members int) *layers {
	l := &layers{shape: s, added: make(map[uint64]struct{}, members)}
	l.extend()
	return l
}

func (l *layers) extend() {
	members := l.members
	rate := float64(FilterRate)
	if l.grows {
		members, rate = layerShape(l.members, len(l.list))
	}
	l.list = append(l.list, bloom.NewWithEstimates(members, rate))
	l.room = members
}

// layerShape is what the n-th layer of a scalable filter is made for. The rates
// are a geometric series whose sum is FilterRate.
func layerShape(first uint, n int) (members uint, rate float64) {
	members = first
	rate = FilterRate * (1 - layerTightening)
	for range n {
		members *= layerGrowth
		rate *= layerTightening
	}
	return members, rate
}

func (l *layers) test(text string) bool {
	// The newest layer is the largest: it has most of the members.
	for _, bits := range slices.Backward(l.list) {
		if bits.TestString(text) {
			return true
		}
	}
	return false
}

func (l *layers) add(text string) {
	h := hash(text)
	l.digest += h
	l.added[h] = struct{}{}
	if l.grows && l.room > 0 && len(l.list) == 1 {
		if !l.list[0].TestOrAddString(text) { // which hashes it once
			l.room--
		}
		return
	}
	if l.grows {
		if l.test(text) {
			return // a subject that is found takes no room
		}
		if l.room == 0 {
			l.extend()
		}
		l.room--
	}
	l.list[len(l.list)-1].AddString(text)
}

func hash(text string) uint64 {
	hash64 := fnv.New64a()
	_, _ = hash64.Write([]byte(text))
	return hash64.Sum64()
}
