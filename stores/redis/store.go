package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Store = (*Store)(nil)

// Connect opens a client, and all connections of its pool. [stores.Conn.Client] is
// a [goredis.UniversalClient].
func (r *Store) Connect(ctx context.Context, _ stores.Scope, options stores.ConnOptions) (stores.Conn, error) {
	if r.dial != nil {
		return r.connectSeveral(ctx, options)
	}
	if r.base.Addr == "" {
		if options.Meter != nil || options.Wrap != nil {
			return nil, fmt.Errorf("connect to redis: a %T cannot be metered or interrupted: use a client of a single "+
				"server, or a URL", r.admin)
		}
		return conn{r.admin, r.admin, true}, nil
	}
	client := r.Client(options)
	if err := establish(ctx, client, first(options)); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to redis: %w", err), client.Close())
	}
	return conn{client, client, false}, nil
}

// first is how many connections are opened before the first command.
func first(options stores.ConnOptions) int {
	if options.Cold {
		return 1 // which is closed again: the server is there
	}
	return options.Pool
}

// establish opens connections of a client's pool.
func establish(ctx context.Context, client *goredis.Client, pool int) error {
	held := make([]*goredis.Conn, pool)
	for i := range held {
		held[i] = client.Conn()
	}
	var group errgroup.Group
	for _, conn := range held {
		group.Go(func() error { return conn.Ping(ctx).Err() })
	}
	err := group.Wait()
	for _, conn := range held {
		err = errors.Join(err, conn.Close())
	}
	return err
}

// Usage counts the keys of scope, and the bytes that MEMORY USAGE gives for them: of
// more than 20,000 keys those of the others are estimated from one in 16. An embedded
// server has no memory of its own, and tells no bytes.
func (r *Store) Usage(ctx context.Context, scope stores.Scope) (stores.Usage, error) {
	w := new(weigher)
	if r.model != nil {
		w = nil
	}
	return r.usage(ctx, scope.Prefix(), w)
}

// remove removes the keys of scope, and no others. Keys that are made meanwhile may stay.
func (r *Store) remove(ctx context.Context, scope stores.Scope) error {
	_, err := r.WipePrefix(ctx, scope.Prefix())
	return err
}

// conn is a client that a strategy is given, and the one that holds the connections. lent is
// set if their owner closes them.
type conn struct {
	given, client goredis.UniversalClient
	lent          bool
}

func (c conn) Client() any { return c.given }

// Close ends the connections. A client with pipelines sends what it holds before.
func (c conn) Close() error {
	if c.lent {
		return nil
	}
	return c.client.Close()
}

var _ stores.Pooled = conn{}

// PoolUse is what the client counts, over all servers of a cluster, and with the commands of
// its owner.
func (c conn) PoolUse() stores.PoolUse {
	stats := c.client.PoolStats()
	return stores.PoolUse{Taken: int64(stats.Hits) + int64(stats.Misses), Waited: int64(stats.WaitCount),
		Wait: time.Duration(stats.WaitDurationNs)}
}

var _ stores.Placed = (*Store)(nil)

// Place is where the server runs. What a URL or a client of the caller's leads to is
// on this host by its address alone: a tunnel looks the same.
func (r *Store) Place() stores.Place {
	if r.model != nil {
		return stores.InProcess
	}
	return r.common.Place()
}

// Processes are those of all servers that were started here.
func (r *Store) Processes(ctx context.Context) ([]int, error) { return r.servers().Processes(ctx) }

// Confine lets servers that were started here run on some cores alone.
func (r *Store) Confine(ctx context.Context, cores []int) error {
	return r.servers().Confine(ctx, cores)
}

// servers are those that were started for the store.
func (r *Store) servers() (all server.Group) {
	if r.self.Own != nil {
		all = append(all, r.self.Own)
	}
	for _, n := range r.nodes {
		all = append(all, n.servers()...)
	}
	return all
}

// adopt makes the servers of the nodes the store's own, which asks them by a client of its own from now on.
func (r *Store) adopt() (err error) {
	for _, n := range r.nodes {
		err = errors.Join(err, n.admin.Close())
	}
	r.self.Own = r.servers()
	r.nodes = nil
	return err
}
