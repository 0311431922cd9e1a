package memredis

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/resp"
)

// Conn is a connection to a table that has no other end: what is written is
// parsed and carried out at once, by the writer, and the replies wait to be
// read. A client on top of it never blocks and needs no goroutine.
type Conn struct {
	t      *Table
	in     []byte
	out    bytes.Buffer
	buf    []byte
	queued [][]string // between MULTI and EXEC
	multi  bool
	dirty  bool // a queued command was refused
	closed bool
}

var _ net.Conn = (*Conn)(nil)

// NewConn opens a connection.
func NewConn(t *Table) *Conn { return &Conn{t: t} }

// Write implements [net.Conn]: it carries out every command that is complete.
func (c *Conn) Write(p []byte) (int, error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	src := p
	if len(c.in) > 0 {
		c.in = append(c.in, p...)
		src = c.in
	}
	for len(src) > 0 {
		args, n, err := resp.Command(src)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		src = src[n:]
		c.buf = c.answer(args).appendTo(c.buf[:0])
		c.out.Write(c.buf)
	}
	c.in = append(c.in[:0], src...)
	return len(p), nil
}

// answer adds what belongs to a connection and not to the keys.
func (c *Conn) answer(args []string) Reply {
	switch strings.ToLower(args[0]) {
	case "multi":
		if c.multi {
			return fault("ERR MULTI calls can not be nested")
		}
		c.multi = true
		return okReply
	case "exec":
		return c.exec()
	case "discard":
		if !c.multi {
			return fault("ERR DISCARD without MULTI")
		}
		c.multi, c.dirty, c.queued = false, false, nil
		return okReply
	case "hello": // as a server from before RESP3, which clients fall back from
		return fault("ERR unknown command 'HELLO'")
	case "client", "select", "auth":
		return okReply
	}
	if !c.multi {
		return c.t.Do(args)
	}
	if k := table[strings.ToLower(args[0])]; k == nil || len(args) != k.arity && (k.arity > 0 || len(args) < -k.arity) {
		c.dirty = true
		return c.t.Do(args) // which says what is wrong with it
	}
	c.queued = append(c.queued, args)
	return status("QUEUED")
}

func (c *Conn) exec() Reply {
	if !c.multi {
		return fault("ERR EXEC without MULTI")
	}
	queued, dirty := c.queued, c.dirty
	c.multi, c.dirty, c.queued = false, false, nil
	if dirty {
		return fault("EXECABORT Transaction discarded because of previous errors.")
	}
	out := Reply{Kind: Array, Array: make([]Reply, len(queued))}
	for i, args := range queued {
		out.Array[i] = c.t.Do(args)
	}
	return out
}

// Read implements [net.Conn]. Where nothing waits nothing will come, so it fails
// like a connection that has run into its deadline.
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
func (address) String() string  { return "memory" }
