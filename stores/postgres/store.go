package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
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
	err = p.self.Enter(ctx, scope)
	if err == nil && !p.self.Shared() {
		err = p.CreateSchema(ctx, scope.Schema())
	}
	return 0, err
}

// Connect opens a pool whose [Conn.Client] is a [*pgxpool.Pool], and all its
// connections. They have the scope's schema as their search path.
func (p *Store) Connect(ctx context.Context, scope stores.Scope, o stores.ConnOptions) (stores.Conn, error) {
	pool, err := p.Pool(ctx, PoolOptions{
		Schema: scope.Schema(), Size: o.Pool, Cold: o.Cold, Meter: o.Meter, DialWrap: o.Wrap, Timeout: o.Timeout,
	})
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

// Usage counts the rows of the tables of scope, and the bytes of these with their
// indexes: whole pages, those of versions of rows included that nobody sees any more.
func (p *Store) Usage(ctx context.Context, scope stores.Scope) (u stores.Usage, err error) {
	const tables = `SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY c.relname`
	rows, err := p.admin.Query(ctx, tables, scope.Schema())
	if err != nil {
		return u, fmt.Errorf("list the tables of %s: %w", scope.Schema(), err)
	}
	var names []string
	var name string
	var bytes int64
	_, err = pgx.ForEachRow(rows, []any{&name, &bytes}, func() error {
		names = append(names, name)
		u.Bytes += bytes
		return nil
	})
	if err != nil {
		return stores.Usage{}, fmt.Errorf("list the tables of %s: %w", scope.Schema(), err)
	}
	for _, name := range names {
		var n int64
		if err := p.admin.QueryRow(ctx, "SELECT count(*) FROM "+pgx.Identifier{scope.Schema(), name}.Sanitize()).Scan(&n); err != nil {
			return stores.Usage{}, fmt.Errorf("count the rows of %s: %w", name, err)
		}
		u.Rows += n
	}
	return u, nil
}

// Wipe removes the schema of scope and all that is in it. It may not exist. What it
// cannot remove is tried again by the next Prepare and by Close. From a replica its
// primary removes it.
func (p *Store) Wipe(ctx context.Context, scope stores.Scope) error {
	if p.replica {
		return nil
	}
	return p.common.Wipe(ctx, scope)
}

func (p *Store) remove(ctx context.Context, scope stores.Scope) error {
	return p.DropSchema(ctx, scope.Schema())
}

type conn struct{ pool *pgxpool.Pool }

func (c conn) Client() any { return c.pool }

func (c conn) Close() error {
	c.pool.Close()
	return nil
}
