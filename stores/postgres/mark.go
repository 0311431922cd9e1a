package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/stores"
)

var _ stores.Marker = (*Store)(nil)

// mark is the name of the table that a run would miss.
func mark(scope stores.Scope) string {
	return pgx.Identifier{scope.Schema(), "quotabench_mark"}.Sanitize()
}

// Mark implements [stores.Marker] by a table of one row.
func (p *Store) Mark(ctx context.Context, scope stores.Scope) error {
	if _, err := p.admin.Exec(ctx, "CREATE TABLE "+mark(scope)+" AS SELECT 1 AS mark"); err != nil {
		return fmt.Errorf("leave a mark in postgresql: %w", err)
	}
	return nil
}

// undefinedTable is PostgreSQL's code for a table, or a schema in a table's name, that
// is not there.
const undefinedTable = "42P01"

// Marked implements [stores.Marker].
func (p *Store) Marked(ctx context.Context, scope stores.Scope) (there bool, err error) {
	err = p.admin.QueryRow(ctx, "SELECT count(*) = 1 FROM "+mark(scope)).Scan(&there)
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == undefinedTable {
		return false, nil
	}
	return there, err
}

// Unmark implements [stores.Marker].
func (p *Store) Unmark(ctx context.Context, scope stores.Scope) error {
	_, err := p.admin.Exec(ctx, "DROP TABLE IF EXISTS "+mark(scope))
	return err
}
