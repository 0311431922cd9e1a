package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/stores"
)

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
	sql := "CREATE TABLE " + mark(scope) + " AS SELECT 0 AS looks, ARRAY(" + tablesOf + quoted(scope.Schema()) + ") AS tables"
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
