package sim

import "sync"

// Progress is how far a simulation has come. Its zero value is one that has not begun.
// It may be read while the simulation goes on.
type Progress struct {
	mu     sync.Mutex
	shares []float64 // by strategy
}

// Share is the part of all strategies' requests, or of their virtual time, that has
// passed: 0 to 1.
func (p *Progress) Share() (sum float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shares {
		sum += s
	}
	return sum / float64(max(len(p.shares), 1))
}

func (p *Progress) begin(strategies int) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.shares = make([]float64, strategies)
	}
}

// unasked is the number of a strategy that nobody asks about.
const unasked = -1

// set says how far a strategy has come.
func (p *Progress) set(strategy int, share float64) {
	if p != nil && strategy != unasked {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.shares[strategy] = share
	}
}

// tell says how far the strategy has come, now and then.
func (d *drive) tell() {
	const every = 256 // requests
	if d.next%every != 0 {
		return
	}
	share := float64(d.next) / float64(d.requests)
	if d.cfg.Duration > 0 {
		share = max(share, float64(d.now()-d.epoch)/float64(d.cfg.Duration))
	}
	d.cfg.Progress.set(d.number, min(share, 1))
}
