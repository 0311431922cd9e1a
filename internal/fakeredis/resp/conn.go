package resp

import (
	"bufio"
	"bytes"
	"errors"
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
	data   []byte // what is not handled yet: the beginning of a command that has not arrived whole
	from   bytes.Reader
	reader *Reader
	out    *bytes.Buffer
	closed bool
}

var _ net.Conn = (*Conn)(nil)

// connSize is how much a connection reads ahead of what is written at once.
const connSize = 512

// NewConn makes a connection. Its handle answers one command by writing to out.
func NewConn(out *bytes.Buffer, handle func(args []string)) *Conn {
	return &Conn{handle: handle, out: out, reader: &Reader{reader: bufio.NewReaderSize(nil, connSize)}}
}

// Write implements [net.Conn]: it handles every command that is complete.
func (c *Conn) Write(data []byte) (int, error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	c.data = append(c.data, data...)
	c.from.Reset(c.data)
	c.reader.reader.Reset(&c.from)
	for handled := 0; ; handled = len(c.data) - c.from.Len() - c.reader.reader.Buffered() {
		args, _, err := c.reader.Command()
		switch {
		case errors.Is(err, ErrProtocol):
			return 0, err
		case err != nil:
			c.data = append(c.data[:0], c.data[handled:]...)
			return len(data), nil
		}
		c.handle(Texts(args))
	}
}

// Read implements [net.Conn]. If no reply waits, none will come, so it fails at
// once, as a socket does that has run into its deadline.
func (c *Conn) Read(data []byte) (int, error) {
	if c.out.Len() > 0 {
		return c.out.Read(data)
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
