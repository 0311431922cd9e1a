package network

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// conn is the client's end of a connection over a link.
type conn struct {
	net.Conn // of a pipe, whose other end is far
	far      net.Conn
	store    net.Conn
	link     *Link
	ready    int64 // when it is open: a handshake is a round trip
	// told is set if the commands in what is written are counted for it, and asks if the next write has some.
	told, asks bool
	losing     atomic.Bool // the next reply
	lost       atomic.Bool
	closed     atomic.Bool
}

// Wrap puts the link into a connection that was just opened.
func (l *Link) Wrap(store net.Conn) net.Conn {
	c := &conn{store: store, link: l, ready: l.due(back, 0)}
	c.Conn, c.far = net.Pipe()
	c.carry(there, c.far, store)
	c.carry(back, store, c.far)
	return c
}

// Commands says how many commands the next write completes. A connection that is never told takes each write for one.
func (c *conn) Commands(n int64) {
	c.told = true
	c.asks = n > 0
}

// packet is sent on its way; one without data ends the connection.
type packet struct {
	at   int64
	data []byte
}

// queue is how many packets may be on their way before their sender has to wait.
const queue = 256

// carry has what comes from one end arrive at the other one when it is due, in its order.
func (c *conn) carry(way int, from, to net.Conn) {
	sent := make(chan packet, queue)
	go func() {
		defer close(sent)
		data := make([]byte, 32<<10)
		for {
			n, err := from.Read(data)
			p := packet{at: c.link.due(way, n), data: slices.Clone(data[:n])}
			if way == there {
				p.at = max(p.at, c.ready)
			}
			lost := way == back && n > 0 && c.losing.Load()
			if lost {
				c.link.LostReplies.Add(1)
				p.data = nil
			}
			sent <- p
			if err != nil || lost {
				if !lost && n > 0 {
					sent <- packet{at: p.at}
				}
				return
			}
		}
	}()
	go func() {
		for packet := range sent {
			c.link.wait(packet.at)
			// What a client has given up does not reach the store after the run.
			if len(packet.data) > 0 && (!c.closed.Load() || !c.link.over()) {
				if _, err := to.Write(packet.data); err == nil {
					continue
				}
			}
			if way == back && c.losing.Load() {
				c.lost.Store(true)
			}
			_ = from.Close()
			_ = to.Close()
			for range sent { // what follows is for nobody
			}
		}
	}()
}

// Write implements [net.Conn]. What becomes of a request is decided here.
func (c *conn) Write(data []byte) (int, error) {
	if c.lost.Load() {
		return 0, errReset
	}
	if c.asks || !c.told {
		request, reply := c.link.loses()
		switch {
		case request:
			c.link.Lost.Add(1)
			c.lost.Store(true)
			_ = c.far.Close()
			_ = c.store.Close()
			return len(data), nil
		case reply:
			c.losing.Store(true)
		}
	}
	n, err := c.Conn.Write(data)
	return n, c.seen(err)
}

// Read implements [net.Conn].
func (c *conn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	return n, c.seen(err)
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// seen makes errors of the pipe those of a connection.
func (c *conn) seen(err error) error {
	switch {
	case err == nil || errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case c.closed.Load():
		return net.ErrClosed
	case c.lost.Load() || errors.Is(err, io.ErrClosedPipe):
		return errReset
	}
	return err
}

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return c.store.LocalAddr() }

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return c.store.RemoteAddr() }

// Reset is what a client sees of a connection that is lost as planned; text says of which plan.
func Reset(text string) error {
	return &net.OpError{Op: "read", Net: "tcp", Err: errors.Join(errors.New(text), syscall.ECONNRESET)}
}

// Switch cuts connections off: while it is off, every read and write on them fails as if the other side had gone. The
// zero value lets everything through.
type Switch struct{ off atomic.Bool }

// Set cuts connections off, or lets them through again.
func (s *Switch) Set(off bool) { s.off.Store(off) }

// Wrap puts the switch into a connection.
func (s *Switch) Wrap(conn net.Conn) net.Conn { return &switched{conn, s} }

type switched struct {
	net.Conn
	s *Switch
}

var errOff = Reset("planned outage")

// Read implements [net.Conn]. What arrives while the switch is off is lost.
func (c *switched) Read(data []byte) (int, error) {
	if c.s.off.Load() {
		return 0, errOff
	}
	n, err := c.Conn.Read(data)
	if c.s.off.Load() {
		return 0, errOff
	}
	return n, err
}

// Write implements [net.Conn].
func (c *switched) Write(data []byte) (int, error) {
	if c.s.off.Load() {
		return 0, errOff
	}
	return c.Conn.Write(data)
}

// Relay is an address on this machine whose connections lead to another one over a link.
type Relay struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn // of both sides
}

// NewRelay listens, and leads each connection to the address over the link.
func NewRelay(to string, link *Link) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	relay := &Relay{Listener: listener}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			far = link.Wrap(far)
			relay.mu.Lock()
			relay.conns = append(relay.conns, near, far)
			relay.mu.Unlock()
			go pump(near, far)
			go pump(far, near)
		}
	}()
	return relay, nil
}

// pump carries what comes from one side to the other one, and ends both.
func pump(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// Close ends the relay and its connections at once: what is on its way is lost. One that is being opened may go on.
func (r *Relay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	return r.Listener.Close()
}
