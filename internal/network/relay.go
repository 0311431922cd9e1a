package network

import (
	"io"
	"net"
	"sync"
)

// Relay is an address on this machine whose connections lead to another one over a link.
type Relay struct {
	net.Listener
	mu     sync.Mutex
	conns  []net.Conn // of both sides
	closed bool
}

// NewRelay listens, and leads each connection to the address over the link.
func NewRelay(to string, link *Link) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{Listener: l}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			far = link.Wrap(far)
			r.keep(near, far)
			go pump(near, far)
			go pump(far, near)
		}
	}()
	return r, nil
}

// keep has connections end with the relay.
func (r *Relay) keep(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conns...)
	if r.closed {
		r.end()
	}
}

func (r *Relay) end() {
	for _, c := range r.conns {
		_ = c.Close()
	}
}

// pump carries what comes from one side to the other one, and ends both.
func pump(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

// Close ends the relay and its connections at once: what is on its way is lost.
func (r *Relay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.end()
	return r.Listener.Close()
}
