package stores

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

var _ Store = (*Postgres)(nil)

// Driver is "postgres".
func (p *Postgres) Driver() string { return "postgres" }

// Prepare makes the schema of scope. One that exists already is an error, so that
// there are never strays.
func (p *Postgres) Prepare(ctx context.Context, scope Scope) (strays int64, err error) {
	return 0, p.CreateSchema(ctx, scope.Schema())
}

// Connect opens a pool whose [Conn.Client] is a [*pgxpool.Pool], and all its
// connections. They have the scope's schema as their search path.
func (p *Postgres) Connect(ctx context.Context, scope Scope, o ConnOptions) (Conn, error) {
	pool, err := p.Pool(ctx, PoolOptions{Schema: scope.Schema(), Size: o.Pool, Meter: o.Meter, DialWrap: o.Wrap, Timeout: o.Timeout})
	if err != nil {
		return nil, err
	}
	held := make([]*pgxpool.Conn, o.Pool)
	err = together(len(held), func(i int) (err error) {
		held[i], err = pool.Acquire(ctx)
		return err
	})
	for _, h := range held {
		if h != nil {
			h.Release()
		}
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to postgresql: %w", err)
	}
	return postgresConn{pool}, nil
}

// Usage is 0: PostgreSQL keeps no keys.
func (p *Postgres) Usage(context.Context, Scope) (Usage, error) { return Usage{}, nil }

// Wipe removes the schema of scope and all that is in it. It may not exist.
func (p *Postgres) Wipe(ctx context.Context, scope Scope) error {
	return p.DropSchema(ctx, scope.Schema())
}

type postgresConn struct{ pool *pgxpool.Pool }

func (c postgresConn) Client() any { return c.pool }

func (c postgresConn) Close() error {
	c.pool.Close()
	return nil
}
