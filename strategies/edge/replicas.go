package edge

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// replicas is a model of a key-value store with a replica in each region. A write
// is seen at once if it was made, and everywhere else after the lag. Of two
// writes the later one wins.
type replicas struct {
	lag time.Duration
	// mu is never held across anything that waits, so a scheduler need not know.
	mu   sync.Mutex
	keys map[string]*history
	made int64
}

// write is one version of a key.
type write struct {
	at     time.Time
	number int64 // in the order of writing, for writes of one moment
	region string
	units  int64
}

func (w write) compare(o write) int {
	return cmp.Or(w.at.Compare(o.at), cmp.Compare(w.number, o.number))
}

// history is a key's writes that not everyone has seen, in their order, after the
// last one that everyone has.
type history struct {
	writes []write
	own    map[string]write // the last one of each region
}

// get reads a key in a region. The number of the version is 0 if there is none.
// stale is set if another region has written since.
func (r *replicas) get(key, region string, now time.Time) (w write, stale bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.keys[key]
	if h == nil {
		return write{}, false
	}
	// The first write that is not seen everywhere yet.
	i, _ := slices.BinarySearchFunc(h.writes, now.Add(-r.lag), func(w write, seen time.Time) int {
		if w.at.After(seen) {
			return 1
		}
		return -1
	})
	if i > 0 {
		w = h.writes[i-1]
		h.writes = slices.Delete(h.writes, 0, i-1)
	}
	if own, ok := h.own[region]; ok && own.compare(w) > 0 {
		w = own
	}
	return w, h.writes[len(h.writes)-1].number != w.number
}

// put writes a key in a region. lost is set if that overwrites a version that its
// writer, who had read the version with the number, has not seen.
func (r *replicas) put(key, region string, now time.Time, units, read int64) (lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[string]*history{}
	}
	h := r.keys[key]
	if h == nil {
		h = &history{own: map[string]write{}}
		r.keys[key] = h
	} else {
		lost = h.writes[len(h.writes)-1].number != read
	}
	r.made++
	w := write{now, r.made, region, units}
	// Clocks of instances may differ: the order is that of their times.
	i, _ := slices.BinarySearchFunc(h.writes, w, write.compare)
	h.writes = slices.Insert(h.writes, i, w)
	if w.compare(h.own[region]) > 0 {
		h.own[region] = w
	}
	return lost
}

// reset makes a write the only one of a key.
func (r *replicas) reset(key, region string, at time.Time, units int64) {
	r.mu.Lock()
	delete(r.keys, key)
	r.mu.Unlock()
	r.put(key, region, at, units, 0)
}
