package network

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
)

// Reset is what a client sees of a connection that is lost as planned; text says of which plan.
func Reset(text string) error {
	return &net.OpError{Op: "read", Net: "tcp", Err: errors.Join(errors.New(text), syscall.ECONNRESET)}
}

// Switch cuts connections off: while it is off, every read and write on them fails as if the other side had gone. The zero value
// lets everything through.
type Switch struct{ off atomic.Bool }

// Set cuts connections off, or lets them through again.
func (s *Switch) Set(off bool) { s.off.Store(off) }

// Wrap puts the switch into a connection.
func (s *Switch) Wrap(c net.Conn) net.Conn { return &switched{c, s} }

type switched struct {
	net.Conn
	s *Switch
}

var errOff = Reset("planned outage")

// Read implements [net.Conn]. What arrives while the switch is off is lost.
func (c *switched) Read(b []byte) (int, error) {
	if c.s.off.Load() {
		return 0, errOff
	}
	n, err := c.Conn.Read(b)
	if c.s.off.Load() {
		return 0, errOff
	}
	return n, err
}

// Write implements [net.Conn].
func (c *switched) Write(b []byte) (int, error) {
	if c.s.off.Load() {
		return 0, errOff
	}
	return c.Conn.Write(b)
}
