package sched

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // how Redis names scripts
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quotabench/quotabench/internal/resp"
)

// Embedded is a Redis in this process that answers on the caller's own stack: no
// port, no pipe and no goroutine lies between a command and its reply, so that a
// schedule costs what its commands cost and nothing can happen out of turn. The
// commands are those of miniredis.
type Embedded struct {
	mini   *miniredis.Miniredis
	server *server.Server
	loaded map[string]string // script sources to their digests
}

// NewEmbedded makes an empty one. It must be closed.
func NewEmbedded() (*Embedded, error) {
	e := &Embedded{mini: miniredis.NewMiniRedis(), loaded: map[string]string{}}
	// The commands are there once somebody has dialled.
	c, err := e.mini.Dial()
	if err != nil {
		return nil, fmt.Errorf("start an in-process redis: %w", err)
	}
	e.server = e.mini.Server()
	return e, c.Close()
}

// Mini is the store behind it, for those who look at it from outside of all actors.
func (e *Embedded) Mini() *miniredis.Miniredis { return e.mini }

// Reset empties the store for a fresh run of s that begins at start, the store's
// own clock being ahead by skew. Scripts stay loaded.
func (e *Embedded) Reset(s *Scheduler, start time.Time, skew time.Duration) {
	e.mini.FlushAll()
	s.OnSync(Age(e.mini, start, skew))
}

// Client makes a client whose commands park the actor that sends them.
func (e *Embedded) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return e.Dial(), nil },
		MaxRetries:               -1,
		PoolSize:                 2, // actors take turns; the second is for those outside
		DisableIdentity:          true,
		ReadTimeout:              -1,
		WriteTimeout:             -1,
		ConnMaxIdleTime:          -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	c.AddHook(Hook{})
	return c
}

// Dial makes a connection. It must be used from one goroutine at a time.
func (e *Embedded) Dial() net.Conn {
	c := &inlineConn{e: e}
	c.w = bufio.NewWriterSize(&c.out, 512)
	c.peer = server.NewPeer(c.w)
	return c
}

// Close releases the store.
func (e *Embedded) Close() { e.mini.Close() }

// dispatch runs one command. Loading a script again is answered here, because
// miniredis compiles it each time and every run of a strategy begins with it.
func (e *Embedded) dispatch(p *server.Peer, args []string) {
	if len(args) == 3 && strings.EqualFold(args[0], "script") && strings.EqualFold(args[1], "load") {
		if sha, ok := e.loaded[args[2]]; ok {
			p.WriteBulk(sha)
			return
		}
		sum := sha1.Sum([]byte(args[2])) //nolint:gosec // as above
		e.loaded[args[2]] = hex.EncodeToString(sum[:])
	}
	e.server.Dispatch(p, args)
}

// inlineConn is a connection whose Write runs the commands and whose Read hands
// out the replies.
type inlineConn struct {
	e      *Embedded
	in     []byte // the beginning of a command that has not arrived whole
	out    bytes.Buffer
	w      *bufio.Writer
	peer   *server.Peer
	closed bool
}

// Write implements net.Conn.
func (c *inlineConn) Write(p []byte) (int, error) {
	if c.closed {
		return 0, io.ErrClosedPipe
	}
	rest := p
	if len(c.in) > 0 {
		c.in = append(c.in, p...)
		rest = c.in
	}
	for len(rest) > 0 {
		args, n, err := resp.Command(rest)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		rest = rest[n:]
		c.e.dispatch(c.peer, args)
		c.peer.Flush()
	}
	c.in = append(c.in[:0], rest...)
	return len(p), nil
}

// Read implements net.Conn. Where there is nothing to read there never will be,
// so it fails at once, as a socket does that has waited long enough.
func (c *inlineConn) Read(p []byte) (int, error) {
	if c.out.Len() == 0 {
		if c.closed {
			return 0, io.EOF
		}
		return 0, os.ErrDeadlineExceeded
	}
	return c.out.Read(p)
}

// Close implements net.Conn.
func (c *inlineConn) Close() error { c.closed = true; return nil }

// LocalAddr implements net.Conn.
func (c *inlineConn) LocalAddr() net.Addr { return inlineAddr{} }

// RemoteAddr implements net.Conn.
func (c *inlineConn) RemoteAddr() net.Addr { return inlineAddr{} }

// SetDeadline implements net.Conn; nothing here ever waits.
func (c *inlineConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (c *inlineConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (c *inlineConn) SetWriteDeadline(time.Time) error { return nil }

type inlineAddr struct{}

func (inlineAddr) Network() string { return "inline" }
func (inlineAddr) String() string  { return "in process" }
