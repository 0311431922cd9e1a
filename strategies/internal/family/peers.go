package family

import "sync"

// Peers lets the instances of one process ask each other. No decision depends on that: it is for what is reported.
type Peers[T any] struct {
	mu sync.Mutex
	of map[int]T
}

// NewPeers has no instances yet.
func NewPeers[T any]() *Peers[T] { return &Peers[T]{of: map[int]T{}} }

// Put adds an instance, or its next life.
func (p *Peers[T]) Put(instance int, t T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[instance] = t
}

// Sum adds up what f says of all instances but one; -1 leaves out none.
func (p *Peers[T]) Sum(without int, f func(T) int64) (sum int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range p.of {
		if i != without {
			sum += f(t)
		}
	}
	return sum
}
