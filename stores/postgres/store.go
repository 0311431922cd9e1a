package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/quotabench/quotabench/stores"
)

var _ stores.Store = (*Store)(nil)

// Prepare makes the schema of scope, and on a server that others use too enters it as
// this process'. One that exists already is an error, so that
// there are never strays. A replica gets the schema of its primary.
func (p *Store) Prepare(ctx context.Context, scope stores.Scope) (strays int64, err error) {
	if p.replica {
		return 0, nil
	}
	if !p.shared() {
		return 0, p.CreateSchema(ctx, scope.Schema())
	}
	_ = p.pay(ctx) // what still fails is tried again later
	return 0, p.prepareShared(ctx, scope)
}

// Connect opens a pool whose [Conn.Client] is a [*pgxpool.Pool], and all its
// connections. They have the scope's schema as their search path.
func (p *Store) Connect(ctx context.Context, scope stores.Scope, o stores.ConnOptions) (stores.Conn, error) {
	pool, err := p.Pool(ctx, PoolOptions{Schema: scope.Schema(), Size: o.Pool, Cold: o.Cold, Meter: o.Meter, DialWrap: o.Wrap, Timeout: o.Timeout})
	if err != nil {
		return nil, err
	}
	first := o.Pool
	if o.Cold {
		first = 1 // which is closed again: the server is there
	}
	held := make([]*pgxpool.Conn, first)
	var g errgroup.Group
	for i := range held {
		g.Go(func() (err error) {
			held[i], err = pool.Acquire(ctx)
			return err
		})
	}
	err = g.Wait()
	for _, h := range held {
		if h != nil {
			h.Release()
		}
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to postgresql: %w", err)
	}
	return conn{pool}, nil
}

// Usage is 0: PostgreSQL keeps no keys.
func (p *Store) Usage(context.Context, stores.Scope) (stores.Usage, error) {
	return stores.Usage{}, nil
}

// Wipe removes the schema of scope and all that is in it. It may not exist. What it
// cannot remove is tried again by the next Prepare and by Close. From a replica its
// primary removes it.
func (p *Store) Wipe(ctx context.Context, scope stores.Scope) error {
	if p.replica {
		return nil
	}
	return p.wiped(scope, p.DropSchema(ctx, scope.Schema()))
}

type conn struct{ pool *pgxpool.Pool }

func (c conn) Client() any { return c.pool }

func (c conn) Close() error {
	c.pool.Close()
	return nil
}
