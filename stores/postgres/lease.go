package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Keeper = (*Store)(nil)

// family begins the name of every schema of every run.
const family = "quotabench_"

// lease is the comment on a schema: whose it is, and when that was last said, in
// seconds since 1970 of the server's clock. It goes with its schema, and any role that
// may make a schema may write it.
type lease struct {
	Owner   json.RawMessage `json:"quotabench"`
	Renewed float64         `json:"renewed"`
}

// entry reads a comment; ok is false for that of another program.
func entry(schema, comment string) (e leases.Entry, ok bool) {
	var l lease
	if json.Unmarshal([]byte(comment), &l) == nil {
		_, ok = server.ParseOwner(string(l.Owner))
	}
	scope := stores.Scope(strings.TrimPrefix(schema, family))
	return leases.Entry{Scope: scope, Text: string(l.Owner), Version: int64(l.Renewed * 1e6)}, ok
}

// runner runs statements: a pool or a transaction.
type runner interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// board is the server as a [leases.Board]. The entry of a scope is the comment on its schema.
type board struct{ *Store }

// Name implements [leases.Board].
func (board) Name(scope stores.Scope) string { return scope.Schema() }

// Entries implements [leases.Board]. It lists the schemas that this role may drop.
func (b board) Entries(ctx context.Context) (out []leases.Entry, err error) {
	err = b.schemas(ctx, func(name, comment string, now, started float64) {
		e, ok := entry(name, comment)
		if !ok {
			return
		}
		// A server that has just started may have been away for longer than a lease lasts.
		e.Renewed = now-float64(e.Version)/1e6 < server.LeaseLife.Seconds() || now-started < server.JustStarted.Seconds()
		out = append(out, e)
	})
	return out, err
}

// schemas calls f with each schema of a run: its comment, the time, and when the server
// was started.
func (b board) schemas(ctx context.Context, f func(name, comment string, now, started float64)) error {
	rows, _ := b.admin.Query(ctx, `
		SELECT nspname, coalesce(obj_description(oid, 'pg_namespace'), ''),
		       extract(epoch FROM clock_timestamp())::float8, extract(epoch FROM pg_postmaster_start_time())::float8
		FROM pg_namespace
		WHERE starts_with(nspname, $1) AND pg_has_role(nspowner, 'USAGE')`, family) // ForEachRow returns its error
	var name, comment string
	var now, started float64
	_, err := pgx.ForEachRow(rows, []any{&name, &comment, &now, &started}, func() error {
		f(name, comment, now, started)
		return nil
	})
	return err
}

// Enter implements [leases.Board]. A schema is made together with its lease, so that there
// is no moment in which it is nobody's.
func (b board) Enter(ctx context.Context, old leases.Entry, text string) (done bool, err error) {
	schema := old.Scope.Schema()
	if old.Text == "" {
		err = pgx.BeginFunc(ctx, b.admin, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
				return err
			}
			return sign(ctx, tx, schema, text)
		})
		if taken(err) {
			return false, nil
		}
		return err == nil, err
	}
	err = pgx.BeginFunc(ctx, b.admin, func(tx pgx.Tx) error {
		now, _, err := locked(ctx, tx, schema)
		if err != nil || now.Text != old.Text || now.Version != old.Version {
			return err // a lease that was renewed meanwhile is another one
		}
		done = true
		return sign(ctx, tx, schema, text)
	})
	return done && err == nil, err
}

// taken reports whether a schema is there already, or is being made.
func taken(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == "42P06" || said.Code == "23505")
}

// locked reads the entry of a schema, which others take over after this transaction alone.
// It has no text if there is no entry; there is false if there is no schema.
func locked(ctx context.Context, tx pgx.Tx, schema string) (e leases.Entry, there bool, err error) {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext($1))", schema); err != nil {
		return e, false, err
	}
	var comment string
	const read = "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = $1"
	err = tx.QueryRow(ctx, read, schema).Scan(&comment)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, false, nil
	}
	e, ok := entry(schema, comment)
	if !ok {
		e.Text = ""
	}
	return e, err == nil, err
}

// sign writes the lease on a schema now.
func sign(ctx context.Context, on runner, schema, owner string) error {
	// A comment takes no parameters: the server quotes it.
	var sql string
	err := on.QueryRow(ctx, `
		SELECT format('COMMENT ON SCHEMA %I IS %L', $1::text,
		              json_build_object('quotabench', $2::json,
		                                'renewed', extract(epoch FROM clock_timestamp())::float8)::text)`,
		schema, owner).Scan(&sql)
	if err == nil {
		_, err = on.Exec(ctx, sql)
	}
	return err
}

// Renew implements [leases.Board]. A schema that is gone does not come back by it.
func (b board) Renew(ctx context.Context, scopes []stores.Scope) (err error) {
	for _, scope := range scopes {
		err = errors.Join(err, sign(ctx, b.admin, scope.Schema(), server.Us().Encode()))
	}
	return err
}

// Leave implements [leases.Board].
func (b board) Leave(ctx context.Context, scope stores.Scope, _ bool) error {
	return b.remove(ctx, scope)
}

// dropTimeout bounds how long the removal of what others left waits for their locks.
const dropTimeout = "SET LOCAL lock_timeout = '5s'"

// Clear implements [leases.Board]. What it counts are schemas. One with a lease of this
// process is there again, and empty.
func (b board) Clear(ctx context.Context, scope stores.Scope) (removed int64, err error) {
	schema := scope.Schema()
	if err := b.rollBackPrepared(ctx, schema); err != nil {
		return 0, fmt.Errorf("drop schema %s: %w", schema, err)
	}
	if err := b.dropDatabase(ctx, schema); err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, b.admin, func(tx pgx.Tx) error {
		now, there, err := locked(ctx, tx, schema)
		if err != nil || !there {
			return err
		}
		removed = 1
		statements := []string{dropTimeout, dropping(schema)}
		owner, _ := server.ParseOwner(now.Text)
		if owner.Ours() {
			statements = append(statements, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize())
		}
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if owner.Ours() {
			return sign(ctx, tx, schema, now.Text)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("drop schema %s: %w", schema, err)
	}
	return removed, nil
}

// Count implements [leases.Board]. It finds the schemas, and counts nothing in them.
func (b board) Count(ctx context.Context, _ []stores.Scope) (map[stores.Scope]int64, error) {
	counts := map[stores.Scope]int64{}
	err := b.schemas(ctx, func(name, _ string, _, _ float64) {
		counts[stores.Scope(strings.TrimPrefix(name, family))] = 0
	})
	return counts, err
}

// rollBackPrepared ends the prepared transactions that are named after a schema, which
// hold locks on what is in it and have no connection that could end.
func (p *Store) rollBackPrepared(ctx context.Context, schema string) error {
	// CollectRows returns the error of this.
	rows, _ := p.admin.Query(ctx, `
		SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts
		WHERE database = current_database() AND starts_with(gid, $1)
		  AND substr(gid, length($1) + 1, 1) !~ '[a-z0-9_]'`, schema)
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, sql := range statements {
		if _, err := p.admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
