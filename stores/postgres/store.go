package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Store = (*Store)(nil)

// Prepare makes the schema of scope, and on a server that others use too enters it as
// this process'. One that exists already is an error, so that
// there are never strays. A replica gets the schema of its primary.
func (p *Store) Prepare(ctx context.Context, scope stores.Scope) (strays int64, err error) {
	if p.self.Replica {
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
func (p *Store) Connect(ctx context.Context, scope stores.Scope, options stores.ConnOptions) (stores.Conn, error) {
	pool, err := p.Pool(ctx, PoolOptions{
		Schema: scope.Schema(), Size: options.Pool, Cold: options.Cold, Meter: options.Meter, DialWrap: options.Wrap,
		Timeout: options.Timeout,
	})
	if err != nil {
		return nil, err
	}
	first := options.Pool
	if options.Cold {
		first = 1 // which is closed again: the server is there
	}
	held := make([]*pgxpool.Conn, first)
	var group errgroup.Group
	for i := range held {
		group.Go(func() (err error) {
			held[i], err = pool.Acquire(ctx)
			return err
		})
	}
	err = group.Wait()
	for _, conn := range held {
		if conn != nil {
			conn.Release()
		}
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to postgresql: %w", err)
	}
	return conn{pool}, nil
}

// Usage counts the rows of the tables of scope, and the bytes of these with their
// indexes. Bytes are those of whole pages, with versions of rows that are dead.
func (p *Store) Usage(ctx context.Context, scope stores.Scope) (usage stores.Usage, err error) {
	schema := scope.Schema()
	tables, err := p.tableSizes(ctx, schema)
	if err != nil {
		return stores.Usage{}, fmt.Errorf("list the tables of %s: %w", schema, err)
	}
	for _, table := range tables {
		query := "SELECT count(*) FROM " + pgx.Identifier{schema, table.Name}.Sanitize()
		var rows int64
		err := p.admin.QueryRow(ctx, query).Scan(&rows)
		if err != nil {
			return stores.Usage{}, fmt.Errorf("count the rows of %s: %w", table.Name, err)
		}
		usage.Rows += rows
		usage.Bytes += table.Bytes
	}
	return usage, nil
}

type tableSize struct {
	Name  string
	Bytes int64 // with its indexes
}

func (p *Store) tableSizes(ctx context.Context, schema string) ([]tableSize, error) {
	const query = `SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY c.relname`
	rows, _ := p.admin.Query(ctx, query, schema) // CollectRows returns its error
	return pgx.CollectRows(rows, pgx.RowToStructByPos[tableSize])
}

// remove removes the schema of scope and all that is in it, and the database of its name. They may not exist.
func (p *Store) remove(ctx context.Context, scope stores.Scope) error {
	err := p.DropSchema(ctx, scope.Schema())
	return errors.Join(err, p.dropDatabase(ctx, scope.Schema()))
}

// dropDatabase removes the database that was made for a run besides the schema of that name. Most runs have none.
func (p *Store) dropDatabase(ctx context.Context, name string) error {
	var there bool
	err := p.admin.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err == nil && there {
		_, err = p.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
	}
	return format.Wrapf(err, "drop database %s", name)
}

type conn struct{ pool *pgxpool.Pool }

func (c conn) Client() any { return c.pool }

func (c conn) Close() error {
	c.pool.Close()
	return nil
}

// Stats reads the server's statistics. The processor time is that of all its processes; it is 0 on servers that are no
// children of ours, and outside Linux.
func (p *Store) Stats(ctx context.Context) (stores.Stats, error) {
	var start time.Time
	if err := p.admin.QueryRow(ctx, "SELECT pg_postmaster_start_time()").Scan(&start); err != nil {
		return stores.Stats{}, fmt.Errorf("ask postgresql for its state: %w", err)
	}
	stats := stores.Stats{Known: true, Incarnation: start.UTC().Format(time.RFC3339Nano)}
	if pid := p.PID(); pid != 0 {
		stats.CPU, _ = server.CPUOfTree(pid)
	}
	return stats, nil
}

var _ stores.Pooled = conn{}

// PoolUse is what the pool counts.
func (c conn) PoolUse() stores.PoolUse {
	stat := c.pool.Stat()
	return stores.PoolUse{Taken: stat.AcquireCount(), Waited: stat.EmptyAcquireCount(), Wait: stat.EmptyAcquireWaitTime()}
}

// CreateSchema makes a schema, which must not exist.
func (p *Store) CreateSchema(ctx context.Context, name string) error {
	_, err := p.admin.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{name}.Sanitize())
	return format.Wrapf(err, "create schema %s", name)
}

// DropSchema removes a schema and all that is in it. It may not exist. If the
// connection is lost it is tried again, once.
func (p *Store) DropSchema(ctx context.Context, name string) error {
	_, err := p.admin.Exec(ctx, dropping(name))
	if lost(err) && ctx.Err() == nil {
		// The connection was cut while it lay idle. Others may have been, too.
		p.admin.Reset()
		_, err = p.admin.Exec(ctx, dropping(name))
	}
	return format.Wrapf(err, "drop schema %s", name)
}

func dropping(name string) string {
	return "DROP SCHEMA IF EXISTS " + pgx.Identifier{name}.Sanitize() + " CASCADE"
}

// lost reports whether an error is of the connection and not of the statement.
func lost(err error) bool {
	if pgError, ok := errors.AsType[*pgconn.PgError](err); ok {
		// operator intervention, connection exception
		return strings.HasPrefix(pgError.Code, "57P") || strings.HasPrefix(pgError.Code, "08")
	}
	return err != nil
}

var _ stores.Marker = (*Store)(nil)

// mark is the name of the table that a run would miss.
func mark(scope stores.Scope) string {
	return pgx.Identifier{scope.Schema(), "quotabench_mark"}.Sanitize()
}

// tablesOf are the tables of a schema, each with the file that its rows are in: another
// one once the table was emptied or made anew.
const tablesOf = `SELECT c.oid::text || ' ' || c.relfilenode::text FROM pg_class c
	JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = `

// Mark implements [stores.Marker] by a table of one row, which names the tables next
// to it.
func (p *Store) Mark(ctx context.Context, scope stores.Scope) error {
	if p.self.Replica {
		return nil
	}
	sql := "CREATE TABLE " + mark(scope) + " AS SELECT 0 AS looks, ARRAY(" + tablesOf + quoted(scope.Schema()) +
		") AS tables"
	_, err := p.admin.Exec(ctx, sql)
	return format.Wrapf(err, "leave a mark in postgresql")
}

// quoted is a name of ours, of letters, digits and underscores, as a literal.
func quoted(name string) string { return "'" + name + "'" }

// undefinedTable is PostgreSQL's code for a table, or a schema in a table's name, that
// is not there.
const undefinedTable = "42P01"

// Marked implements [stores.Marker]. The write to the mark waits for no disk.
func (p *Store) Marked(ctx context.Context, scope stores.Scope) (sign stores.Sign, err error) {
	var started time.Time
	if p.self.Replica {
		err = p.admin.QueryRow(ctx, "SELECT pg_postmaster_start_time()").Scan(&started)
		sign.There = true
	} else {
		err = p.admin.QueryRow(ctx, `
			WITH mark AS (
				UPDATE `+mark(scope)+` SET looks = looks + 1
				WHERE set_config('synchronous_commit', 'off', true) IS NOT NULL RETURNING tables
			)
			SELECT (SELECT count(*) = 1 FROM mark)
			       AND NOT EXISTS (SELECT unnest(tables) FROM mark EXCEPT `+tablesOf+quoted(scope.Schema())+`),
			       pg_postmaster_start_time()`).Scan(&sign.There, &started)
	}
	var answer *pgconn.PgError
	switch {
	case errors.As(err, &answer) && answer.Code == undefinedTable:
		return stores.Sign{}, nil
	case err != nil:
		return stores.Sign{}, err
	}
	sign.Incarnation = started.UTC().Format(time.RFC3339Nano)
	return sign, nil
}

// Unmark implements [stores.Marker].
func (p *Store) Unmark(ctx context.Context, scope stores.Scope) error {
	if p.self.Replica {
		return nil
	}
	_, err := p.admin.Exec(ctx, "DROP TABLE IF EXISTS "+mark(scope))
	return err
}
