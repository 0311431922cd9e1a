package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

// dialTimeout bounds how long a client waits for its session.
const dialTimeout = 5 * time.Second

// sessionTimeout is how long a server keeps a session whose client is gone.
const sessionTimeout = 10 * time.Second

// silence is a logger: the library prints every connection.
type silence struct{}

// Printf prints nothing.
func (silence) Printf(string, ...any) {}

// client makes a client with a session, logged in. The caller closes it.
func (z *Store) client(ctx context.Context, options stores.ConnOptions) (*zk.Conn, error) {
	if options.Timeout == 0 {
		options.Timeout = dialTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := net.DialTimeout(network, address, timeout)
		if err != nil {
			return nil, err
		}
		return options.Around(conn, newParser()), nil
	}
	c, events, err := zk.Connect(z.servers, sessionTimeout, zk.WithDialer(dial), zk.WithLogger(silence{}),
		zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	for c.State() != zk.StateHasSession {
		select {
		case <-events:
		case <-ctx.Done():
			c.Close()
			return nil, errors.New("no session was given in time")
		}
	}
	if z.user != "" {
		if err := c.AddAuth("digest", []byte(z.user+":"+z.password)); err != nil {
			c.Close()
			return nil, fmt.Errorf("log in: %w", err)
		}
	}
	return c, nil
}

// Connect opens a client, and its session. [stores.Conn.Client] is a [*zk.Conn].
func (z *Store) Connect(ctx context.Context, _ stores.Scope, options stores.ConnOptions) (stores.Conn, error) {
	conn, err := z.client(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("connect to zookeeper: %w", err)
	}
	end := func() error {
		conn.Close()
		return nil
	}
	return leases.Conn{Of: conn, End: end}, nil
}
