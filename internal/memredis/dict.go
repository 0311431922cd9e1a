package memredis

import "slices"

// dict is a small map that remembers the order in which its keys came, so that
// whatever walks it gives the same answer in every run.
type dict[V any] struct {
	keys  []string
	vals  []V
	index map[string]int // once there are many
}

// scanned is up to how many keys looking at each is as fast as a map.
const scanned = 8

func (d *dict[V]) find(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	return slices.Index(d.keys, key)
}

// set reports whether the key is new.
func (d *dict[V]) set(key string, v V) bool {
	if i := d.find(key); i >= 0 {
		d.vals[i] = v
		return false
	}
	d.keys, d.vals = append(d.keys, key), append(d.vals, v)
	if d.index != nil {
		d.index[key] = len(d.keys) - 1
	} else if len(d.keys) > scanned {
		d.index = make(map[string]int, 2*scanned)
		for i, k := range d.keys {
			d.index[k] = i
		}
	}
	return true
}

// delete reports whether the key was there. The last key takes its place.
func (d *dict[V]) delete(key string) bool {
	i := d.find(key)
	if i < 0 {
		return false
	}
	last := len(d.keys) - 1
	if i != last {
		d.keys[i], d.vals[i] = d.keys[last], d.vals[last]
		if d.index != nil {
			d.index[d.keys[i]] = i
		}
	}
	delete(d.index, key)
	d.keys, d.vals = d.keys[:last], d.vals[:last]
	return true
}
