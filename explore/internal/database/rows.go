// Package database is what engines ask a PostgreSQL server besides the statements of the clients: the rows that are
// stored, who waits for whose locks, and to have its tables as they were.
package database

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/fakeredis"
)

// Rows lists the rows of all tables of the schemas in a search path.
type Rows struct {
	pool *pgxpool.Pool // whose search path it is
	list string        // empty if there are no tables
	last []fakeredis.Key
}

// columnsOfRows are the columns of all tables of the schemas, and whether each is part of a primary key. Moments are
// left out: they are those of the server's clock.
const columnsOfRows = `SELECT pg_class.oid::regclass::text, quote_ident(attname), indrelid IS NOT NULL
FROM pg_class
JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
LEFT JOIN pg_index ON indrelid = pg_class.oid AND indisprimary AND attnum = ANY(indkey)
WHERE relkind = 'r' AND nspname = ANY(current_schemas(false))
AND atttypid NOT IN ('timestamptz'::regtype, 'timestamp'::regtype)
ORDER BY 1, attnum`

// ReadRows finds out how to list the rows that are committed, each with a name and what it holds.
func ReadRows(ctx context.Context, pool *pgxpool.Pool) (*Rows, error) {
	names := map[string]string{}  // of the rows of a table: its primary key
	values := map[string]string{} // of a row
	var tables []string
	rows, _ := pool.Query(ctx, columnsOfRows) // ForEachRow returns its error
	var table, column string
	var key bool
	_, err := pgx.ForEachRow(rows, []any{&table, &column, &key}, func() error {
		if len(tables) == 0 || tables[len(tables)-1] != table {
			tables = append(tables, table)
		}
		if key {
			names[table] += ", " + column
		} else {
			values[table] += fmt.Sprintf(", '%s ' || %s", strings.ReplaceAll(column, "'", "''"), column)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the columns of tables: %w", err)
	}
	var lists []string
	for _, table := range tables {
		name := strings.ReplaceAll(table, "'", "''")
		list := fmt.Sprintf("SELECT concat_ws(' ', '%s'%s), concat_ws(', ', NULL%s) FROM %s", name, names[table],
			values[table], table)
		if names[table] == "" {
			list = fmt.Sprintf("SELECT '%s', count(*) || ' rows' FROM %s HAVING count(*) > 0", name, table)
		}
		lists = append(lists, list)
	}
	return &Rows{pool: pool, list: strings.Join(lists, " UNION ALL ")}, nil
}

// Look returns the rows that are committed, for people.
func (r *Rows) Look(ctx context.Context) []fakeredis.Key {
	if r.list == "" {
		return nil
	}
	rows, _ := r.pool.Query(ctx, r.list) // CollectRows returns its error
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (fakeredis.Key, error) {
		stored := fakeredis.Key{Content: []string{""}}
		err := row.Scan(&stored.Name, &stored.Content[0])
		return stored, err
	})
	if err != nil { // somebody has locked a table: the step shows no row
		return r.last
	}
	r.last = out
	return out
}
