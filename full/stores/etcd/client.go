package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quotabench/quotabench/full/stores/internal/grpcstore"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

// client makes a client. The caller closes it.
func (e *Store) client(options stores.ConnOptions) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: e.endpoints, Username: e.user, Password: e.password, TLS: e.tls,
		DialTimeout: grpcstore.Timeout(options), Logger: zap.NewNop(),
		MaxUnaryRetries: uint(options.Retries) + 1, // attempts, by which 0 means a hundred
		DialOptions:     grpcstore.Options(options, e.tls != nil),
	})
}

// Connect opens a client, and its one connection. [stores.Conn.Client] is a
// [*clientv3.Client].
func (e *Store) Connect(ctx context.Context, scope stores.Scope, options stores.ConnOptions) (stores.Conn, error) {
	client, err := e.client(options)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	if _, err := client.Get(ctx, scope.Prefix(), clientv3.WithCountOnly()); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return leases.Conn{Of: client, End: client.Close}, nil
}
