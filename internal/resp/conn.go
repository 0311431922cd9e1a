package resp

import (
	"bytes"
	"io"
	"net"
	"os"
	"time"
)

// Conn is a connection whose server is a function: every command that is written
// is answered before Write returns, and the replies wait to be read. A client on
// top of it never blocks and needs no goroutine. It is used from one goroutine at
// a time.
type Conn struct {
	handle func(args []string)
	in     []byte // the beginning of a command that has not arrived whole
	out    *bytes.Buffer
	closed bool
}

var _ net.Conn = (*Conn)(nil)

// NewConn makes a connection. Its handle answers one command by writing to out.
func NewConn(out *bytes.Buffer, handle func(args []string)) *Conn {
	return &Conn{handle: handle, out: out}
}

// Write implements [net.Conn]: it handles every command that is complete.
func (c *Conn) Write(p []byte) (int, error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	rest := p
	if len(c.in) > 0 {
		c.in = append(c.in, p...)
		rest = c.in
	}
	for len(rest) > 0 {
		args, n, err := Command(rest)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		rest = rest[n:]
		c.handle(args)
	}
	c.in = append(c.in[:0], rest...)
	return len(p), nil
}

// Read implements [net.Conn]. If no reply waits, none will come, so it fails at
// once, as a socket does that has run into its deadline.
func (c *Conn) Read(p []byte) (int, error) {
	if c.out.Len() > 0 {
		return c.out.Read(p)
	}
	if c.closed {
		return 0, io.EOF
	}
	return 0, os.ErrDeadlineExceeded
}

// Close implements [net.Conn].
func (c *Conn) Close() error { c.closed = true; return nil }

// LocalAddr implements [net.Conn].
func (c *Conn) LocalAddr() net.Addr { return address{} }

// RemoteAddr implements [net.Conn].
func (c *Conn) RemoteAddr() net.Addr { return address{} }

// SetDeadline implements [net.Conn]; nothing here takes time.
func (c *Conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "in process" }
