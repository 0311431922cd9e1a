package memredis

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
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

// errProtocol is for a client that does not speak RESP.
var errProtocol = errors.New("memredis: not a command in RESP")

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
		args, n, err := parseCommand(src)
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
	if len(args) == 0 {
		return fault("ERR Protocol error: empty command")
	}
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

// parseCommand reads one command; n is 0 where it is not complete.
func parseCommand(b []byte) (args []string, n int, err error) {
	count, at, err := header(b, '*')
	if err != nil || at == 0 {
		return nil, 0, err
	}
	if count < 0 || count > 1<<20 {
		return nil, 0, errProtocol
	}
	args = make([]string, 0, min(count, 1024))
	for range count {
		size, k, err := header(b[at:], '$')
		if err != nil || k == 0 {
			return nil, 0, err
		}
		at += k
		if size < 0 || size > 512<<20 {
			return nil, 0, errProtocol
		}
		if len(b) < at+size+2 {
			return nil, 0, nil
		}
		if b[at+size] != '\r' || b[at+size+1] != '\n' {
			return nil, 0, errProtocol
		}
		args = append(args, string(b[at:at+size]))
		at += size + 2
	}
	return args, at, nil
}

// header reads a type byte and a number; n is 0 where the line is not complete.
func header(b []byte, kind byte) (v, n int, err error) {
	if len(b) == 0 {
		return 0, 0, nil
	}
	if b[0] != kind {
		return 0, 0, errProtocol
	}
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		if len(b) > 32 {
			return 0, 0, errProtocol
		}
		return 0, 0, nil
	}
	if end < 2 || b[end-1] != '\r' {
		return 0, 0, errProtocol
	}
	v, err = strconv.Atoi(string(b[1 : end-1]))
	if err != nil {
		return 0, 0, errProtocol
	}
	return v, end + 1, nil
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
