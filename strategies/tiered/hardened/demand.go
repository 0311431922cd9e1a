package hardened

import "sync"

// demand is what callers of an instance wait for while another draws: the next draw is
// at least as large, so that it serves them all.
type demand struct {
	mu    sync.Mutex
	units map[leaseKey]int64
}

func (d *demand) add(k leaseKey, units int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.units == nil {
		d.units = map[leaseKey]int64{}
	}
	if d.units[k] += units; d.units[k] == 0 {
		delete(d.units, k)
	}
}

func (d *demand) of(k leaseKey) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.units[k]
}
