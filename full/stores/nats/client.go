package nats

import (
	"context"
	"fmt"
	"net"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

// dialTimeout bounds how long a client waits for a connection.
const dialTimeout = 5 * time.Second

// reconnectWait is how soon a client looks again for a server that was gone. The
// library's two seconds would outlast most outages of a run.
const reconnectWait = 10 * time.Millisecond

// dialer opens a client's connections.
type dialer struct {
	net.Dialer
	o stores.ConnOptions
}

// Dial implements [natsgo.CustomDialer].
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.Dialer.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return d.o.Around(conn, &parser{}), nil
}

// client makes a client. The caller closes it. While it has no connection,
// publishing fails at once, as calls to other stores do.
func (n *Store) client(connOptions stores.ConnOptions, more ...natsgo.Option) (*natsgo.Conn, error) {
	if connOptions.Timeout == 0 {
		connOptions.Timeout = dialTimeout
	}
	options := []natsgo.Option{
		natsgo.Timeout(connOptions.Timeout),
		natsgo.SetCustomDialer(&dialer{net.Dialer{Timeout: connOptions.Timeout}, connOptions}),
		natsgo.MaxReconnects(-1), natsgo.ReconnectWait(reconnectWait), natsgo.ReconnectJitter(0, 0),
		natsgo.ReconnectBufSize(-1),
		natsgo.IgnoreDiscoveredServers(),
		// The library prints errors that nobody asked for.
		natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}),
	}
	if n.user != "" {
		options = append(options, natsgo.UserInfo(n.user, n.password))
	}
	return natsgo.Connect(n.url, append(options, more...)...)
}

// Connect opens a client, and its one connection. [stores.Conn.Client] is a
// [*natsgo.Conn].
func (n *Store) Connect(ctx context.Context, _ stores.Scope, options stores.ConnOptions) (stores.Conn, error) {
	conn, err := n.client(options)
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	end := func() error {
		conn.Close()
		return nil
	}
	return leases.Conn{Of: conn, End: end}, ctx.Err()
}
