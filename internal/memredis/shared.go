package memredis

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
)

// Shared is a Redis in this process for programs that speak its protocol: connections to
// it are used from any goroutine, and its clock stands unless it is moved.
type Shared struct {
	mu    sync.Mutex
	redis Redis
}

// Share makes r reachable by connections. Only [Shared.Do] may use r from then on.
func Share(r Redis) *Shared { return &Shared{redis: r} }

// Do has f use the Redis while no command runs: to move its clock, to empty it, or to
// read its keys with the time that they have left. f must not use connections.
func (s *Shared) Do(f func(r Redis)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.redis)
}

// Dial opens a connection, which ignores deadlines. It knows no commands on one line, and
// of the protocol's versions a [Table] knows RESP2 alone.
func (s *Shared) Dial(context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &sharedConn{s: s, Conn: s.redis.dial()}
	c.more.L = &s.mu
	return c, nil
}

// sharedConn waits for replies where the connection within it says that there are none.
type sharedConn struct {
	net.Conn

	s    *Shared
	more sync.Cond // there are replies to read, or the connection is closed
}

func (c *sharedConn) Read(p []byte) (int, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for {
		n, err := c.Conn.Read(p)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		c.more.Wait()
	}
}

func (c *sharedConn) Write(p []byte) (int, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	defer c.more.Broadcast()
	n, err := c.Conn.Write(p)
	if err != nil { // what was sent is no command, and a server would close
		err = errors.Join(err, c.Conn.Close())
	}
	return n, err
}

func (c *sharedConn) Close() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	defer c.more.Broadcast()
	return c.Conn.Close()
}
