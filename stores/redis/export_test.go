package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/host/server"
)

// Password of a server started here.
func (r *Store) Password() string { return r.base.Password }

// Arguments of a server that is a child of ours; they are everybody's to read,
// if only until a server writes over them.
func (r *Store) Arguments() []string {
	if c, ok := r.self.Own.(*server.Child); ok {
		return c.Args()
	}
	return nil
}

// Renew renews the leases at once.
func (r *Store) Renew(ctx context.Context) { r.self.Renew(ctx) }

// Heirs are clients of the replicas that may take the store's place.
func (r *Store) Heirs() (clients []goredis.UniversalClient) {
	heirs, _ := r.heirs(context.Background())
	for _, h := range heirs {
		clients = append(clients, h.admin)
	}
	return clients
}

// KeysUnder counts the keys that begin with prefix, and those among them that
// never expire.
func (r *Store) KeysUnder(ctx context.Context, prefix string) (total, withoutTTL int64, err error) {
	u, err := r.usage(ctx, prefix, nil)
	return u.Keys, u.WithoutTTL, err
}
