// Package schema sets up the tables of strategies that keep their counts in
// PostgreSQL. Every application instance asks for them when it opens, so
// several do so at once.
package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// lockID is the advisory lock under which tables are made. It is a constant of
// ours, and held for milliseconds, so that two runs in one database may share it.
const lockID = 0x71756f7461 // "quota"

// Ensure runs the script, which may hold several statements, unless the table is
// already in the schema that connections of the pool create in. Instances that
// ask at the same time wait for the first: IF NOT EXISTS and OR REPLACE alone
// still fail when two sessions get past their check together.
func Ensure(ctx context.Context, pool *pgxpool.Pool, table, script string) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", lockID); err != nil {
			return err
		}
		// Looked for in the current schema only: a table of that name further down
		// the search path belongs to another owner.
		var exists bool
		err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND "+
			"tablename = $1)", table).Scan(&exists)
		if err != nil || exists {
			return err
		}
		_, err = tx.Exec(ctx, script)
		return err
	})
	if err != nil {
		return fmt.Errorf("create table %s: %w", table, err)
	}
	return nil
}
