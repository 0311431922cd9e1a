package redis

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// Bounds of what a server answers. A client makes room for what the first bytes of a reply announce, and takes a line
// as long as it is: whatever listens at the address of a Redis could have all memory otherwise.
const (
	maxLine     = 64 << 10  // bytes
	maxElements = 1 << 20   // of a list or a map
	maxNested   = 32        // lists in each other
	maxReply    = 128 << 20 // bytes
	headSize    = 24        // of a line, in which its number stands
)

// bounded makes the connection fail at a reply that is beyond the bounds. The result offers access to the socket if
// conn does: go-redis looks at that of an idle connection.
func bounded(conn net.Conn) net.Conn {
	b := &boundedConn{Conn: conn}
	if sys, ok := conn.(syscall.Conn); ok {
		return &boundedSyscallConn{b, sys}
	}
	return b
}

type boundedSyscallConn struct {
	*boundedConn
	sys syscall.Conn
}

func (c *boundedSyscallConn) SyscallConn() (syscall.RawConn, error) { return c.sys.SyscallConn() }

type boundedConn struct {
	net.Conn
	replies bounds
	wrong   error
}

func (c *boundedConn) Read(data []byte) (int, error) {
	if c.wrong != nil {
		return 0, c.wrong
	}
	n, err := c.Conn.Read(data)
	c.wrong = c.replies.follow(data[:n])
	if c.wrong != nil {
		return 0, c.wrong
	}
	return n, err
}

// bounds follows what a server answers, in pieces of any size.
type bounds struct {
	bulk  int64         // bytes of a text that are to come, with the end of its line
	line  int64         // bytes of the line so far
	head  []byte        // the first of them
	bytes int64         // of the reply so far
	open  []openElement // lists that have begun
}

// openElement is a list or a map, with how many of its elements are to come.
type openElement struct {
	left int64
	// attribute is set if it stands before a value and is none itself.
	attribute bool
}

// follow reads the next piece. An error is for good.
func (b *bounds) follow(data []byte) error {
	for len(data) > 0 {
		if b.bulk > 0 {
			n := min(b.bulk, int64(len(data)))
			b.bulk -= n
			data = data[n:]
			if b.bulk == 0 {
				b.ended()
			}
			continue
		}
		end := bytes.IndexByte(data, '\n')
		part := data
		if end >= 0 {
			part = data[:end]
		}
		b.line += int64(len(part))
		b.head = append(b.head, part[:min(len(part), headSize-len(b.head))]...)
		if b.line > maxLine {
			return fmt.Errorf("a line of more than %d bytes is no answer of a Redis", maxLine)
		}
		if end < 0 {
			return nil
		}
		data = data[end+1:]
		if err := b.begun(); err != nil {
			return err
		}
	}
	return nil
}

// begun takes a whole line, with which a value begins.
func (b *bounds) begun() error {
	line := bytes.TrimSuffix(b.head, []byte("\r"))
	b.bytes += b.line
	b.line = 0
	b.head = b.head[:0]
	if len(line) == 0 {
		b.ended()
		return nil
	}
	announced, err := strconv.ParseInt(string(line[1:]), 10, 64)
	kind := line[0]
	switch {
	case bytes.IndexByte([]byte("$!=*~>%|"), kind) < 0 || err != nil || announced < 0: // all of it is here
		b.ended()
		return nil
	case bytes.IndexByte([]byte("$!="), kind) >= 0:
		b.bytes += min(announced, maxReply)
		if announced > maxReply || b.bytes > maxReply {
			return fmt.Errorf("an answer of more than %d bytes is none that a run asks for", maxReply)
		}
		b.bulk = announced + 2
		return nil
	case announced > maxElements || len(b.open) == maxNested:
		return fmt.Errorf("an answer with %d elements, in %d lists, is none that a run asks for", announced, len(b.open))
	case kind == '%' || kind == '|':
		announced *= 2
	}
	b.open = append(b.open, openElement{announced, kind == '|'})
	if announced == 0 {
		b.closed()
	}
	return nil
}

// ended takes a value that is complete.
func (b *bounds) ended() {
	if len(b.open) == 0 {
		b.bytes = 0
		return
	}
	last := &b.open[len(b.open)-1]
	last.left--
	if last.left == 0 {
		b.closed()
	}
}

// closed takes the end of the innermost list.
func (b *bounds) closed() {
	last := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	if !last.attribute {
		b.ended()
	}
}
