package sim

import (
	"math"
	"sync"
	"sync/atomic"
)

// Progress is how far a simulation has come. Its zero value is one that has not begun.
// It may be read while the simulation goes on.
type Progress struct {
	mu     sync.Mutex
	shares []*atomic.Uint64 // bits of a float64, by strategy
}

// Share is the part of all strategies' requests, or of their virtual time, that has
// passed: 0 to 1.
func (p *Progress) Share() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := 0.0
	for _, s := range p.shares {
		sum += math.Float64frombits(s.Load())
	}
	return sum / float64(max(len(p.shares), 1))
}

func (p *Progress) begin(strategies int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shares = nil
	for range strategies {
		p.shares = append(p.shares, new(atomic.Uint64))
	}
}

// of is where strategy i says how far it has come; nil if nobody asks.
func (p *Progress) of(i int) *atomic.Uint64 {
	if p == nil {
		return nil
	}
	return p.shares[i]
}

// tell says how far the strategy has come, now and then.
func (d *drive) tell() {
	const every = 256 // requests
	if d.part == nil || d.next%every != 0 {
		return
	}
	share := float64(d.next) / float64(d.requests)
	if d.cfg.Duration > 0 {
		share = max(share, float64(d.now()-d.epoch)/float64(d.cfg.Duration))
	}
	d.part.Store(math.Float64bits(min(share, 1)))
}
