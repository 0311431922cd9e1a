// Package grpcstore is what the drivers of servers that are asked over gRPC share: how
// connections are dialled, metered and looked for again.
package grpcstore

import (
	"cmp"
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
)

// DialTimeout bounds how long a client waits for a connection, and for a login.
const DialTimeout = 5 * time.Second

// reconnect is how soon a client looks for a server that was gone. gRPC's own
// second would outlast most outages of a run.
var reconnect = grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
		MaxDelay: 20 * time.Millisecond},
	MinConnectTimeout: DialTimeout,
}

// Timeout is that of a dial.
func Timeout(options stores.ConnOptions) time.Duration { return cmp.Or(options.Timeout, DialTimeout) }

// Options dial as options says. Calls fail while there is no connection, as calls to other
// stores do.
func Options(options stores.ConnOptions, encrypted bool) []grpc.DialOption {
	if wrap := options.Wrap; wrap != nil {
		options.Wrap = func(conn net.Conn) net.Conn { return closer{wrap(conn)} }
	}
	dialer := net.Dialer{Timeout: Timeout(options)}
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return options.Around(conn, NewParser(encrypted)), nil
	}
	return []grpc.DialOption{grpc.WithContextDialer(dial), grpc.WithConnectParams(reconnect),
		grpc.WithChainUnaryInterceptor(atOnce)}
}

// atOnce makes a call fail while there is no connection. etcd's client waits for one,
// for as long as its caller does.
func atOnce(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	return invoke(ctx, method, req, reply, conn, append(opts, grpc.WaitForReady(false))...)
}

// closer closes a connection that cannot be written to. gRPC leaves it to its reader
// to find that out, and the reader of a connection that is only made to fail would
// wait forever.
type closer struct{ net.Conn }

// Commands passes on what the meter tells.
func (c closer) Commands(n int64) {
	if told, ok := c.Conn.(interface{ Commands(n int64) }); ok {
		told.Commands(n)
	}
}

// Write implements [net.Conn].
func (c closer) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

// ErrorKind says what a status of gRPC means for a request; empty for those that only
// the server's own documents explain.
func ErrorKind(code codes.Code) quota.ErrorKind {
	switch code {
	case codes.DeadlineExceeded:
		return quota.ErrorTimeout
	case codes.Aborted:
		return quota.ErrorContention
	case codes.Unavailable, codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated:
		return quota.ErrorStore
	}
	return ""
}
