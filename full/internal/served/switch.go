package served

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
)

// Switch cuts a client's connections off. It is used as [stores.ConnOptions.Wrap]:
//
//	var off served.Switch
//	c, err := store.Connect(ctx, scope, stores.ConnOptions{Pool: 1, Wrap: off.Wrap})
//
// The zero value lets everything through.
type Switch struct{ off atomic.Bool }

// errCut is what a client sees: a connection that was reset.
var errCut = &net.OpError{Op: "read", Net: "tcp", Err: errors.Join(errors.New("cut off by the test"), syscall.ECONNRESET)}

// Set cuts connections off, or lets the client make new ones.
func (s *Switch) Set(off bool) { s.off.Store(off) }

// Wrap puts the switch into a connection.
func (s *Switch) Wrap(c net.Conn) net.Conn { return &switched{c, s} }

type switched struct {
	net.Conn
	s *Switch
}

// Read implements [net.Conn]. What arrives while the switch is off is lost.
func (c *switched) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.s.off.Load() {
		return 0, errors.Join(errCut, c.Close())
	}
	return n, err
}

// Write implements [net.Conn].
func (c *switched) Write(b []byte) (int, error) {
	if c.s.off.Load() {
		return 0, errors.Join(errCut, c.Close())
	}
	return c.Conn.Write(b)
}
