package etcd

import (
	"context"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/quotabench/quotabench/stores"
)

// dialTimeout bounds how long a client waits for a connection, and for a login.
const dialTimeout = 5 * time.Second

// reconnect is how soon a client looks for a server that was gone. gRPC's own
// second would outlast most outages of a run.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 20 * time.Millisecond},
	MinConnectTimeout: dialTimeout,
}

// atOnce makes a call fail while there is no connection, as calls to other stores
// do. etcd's client waits for one, for as long as its caller does.
func atOnce(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(false))...)
}

// closer closes a connection that cannot be written to. gRPC leaves it to its reader
// to find that out, and the reader of a connection that is only made to fail would
// wait for ever.
type closer struct{ net.Conn }

// Write implements [net.Conn].
func (c closer) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

// client makes a client. The caller closes it.
func (e *Store) client(o stores.ConnOptions) (*clientv3.Client, error) {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = dialTimeout
	}
	dialer := net.Dialer{Timeout: timeout}
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		if o.Wrap != nil {
			c = closer{o.Wrap(c)}
		}
		if o.Meter != nil {
			c = o.Meter.Conn(c, e.parser())
		}
		return c, nil
	}
	return clientv3.New(clientv3.Config{
		Endpoints: e.endpoints, Username: e.user, Password: e.password, TLS: e.tls,
		DialTimeout: timeout, Logger: zap.NewNop(),
		MaxUnaryRetries: uint(o.Retries) + 1, // attempts, by which 0 means a hundred
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(dial), grpc.WithConnectParams(reconnect), grpc.WithChainUnaryInterceptor(atOnce),
		},
	})
}

// Connect opens a client, and its one connection. [stores.Conn.Client] is a
// [*clientv3.Client].
func (e *Store) Connect(ctx context.Context, scope stores.Scope, o stores.ConnOptions) (stores.Conn, error) {
	c, err := e.client(o)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	if _, err := c.Get(ctx, scope.Prefix(), clientv3.WithCountOnly()); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return conn{c}, nil
}

type conn struct{ c *clientv3.Client }

func (c conn) Client() any  { return c.c }
func (c conn) Close() error { return c.c.Close() }
