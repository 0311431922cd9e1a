package network

import (
	"io"
	"net"
	"sync"
)

// Relay is an address on this machine whose connections lead to another one over a link.
type Relay struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn // of both sides
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
			r.mu.Lock()
			r.conns = append(r.conns, near, far)
			r.mu.Unlock()
			go pump(near, far)
			go pump(far, near)
		}
	}()
	return r, nil
}

// pump carries what comes from one side to the other one, and ends both.
func pump(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

// Close ends the relay and its connections at once: what is on its way is lost. One that is being opened may go on.
func (r *Relay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	return r.Listener.Close()
}
