package database

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Kept is what the tables and sequences of the schemas in a search path held at a moment.
type Kept struct {
	pool    *pgxpool.Pool // whose search path it is
	restore string
	// Tables is how many there are.
	Tables int
}

// tablesInOrder are the tables of the schemas with the columns that can be written. What one refers to was made before
// it.
const tablesInOrder = `SELECT pg_class.oid::regclass::text, string_agg(quote_ident(attname), ', ' ORDER BY attnum)
FROM pg_class
JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
WHERE relkind = 'r' AND nspname = ANY(current_schemas(false)) AND relname NOT LIKE 'quotabench\_kept\_%'
GROUP BY pg_class.oid, relname ORDER BY pg_class.oid`

// Keep remembers what is stored: a table that has rows is copied.
func Keep(ctx context.Context, pool *pgxpool.Pool) (*Kept, error) {
	kept := &Kept{pool: pool}
	var emptied, filled []string
	var name, columns string
	var tables [][2]string
	rows, _ := pool.Query(ctx, tablesInOrder) // ForEachRow returns its error
	_, err := pgx.ForEachRow(rows, []any{&name, &columns}, func() error {
		tables = append(tables, [2]string{name, columns})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	for i, table := range tables {
		name, columns = table[0], table[1]
		copied := fmt.Sprintf("quotabench_kept_%d", i)
		tag, err := pool.Exec(ctx, fmt.Sprintf("CREATE UNLOGGED TABLE %s AS SELECT %s FROM %s", copied, columns, name))
		if err != nil {
			return nil, fmt.Errorf("copy table %s: %w", name, err)
		}
		emptied = append([]string{"DELETE FROM " + name + ";"}, emptied...)
		if tag.RowsAffected() > 0 {
			filled = append(filled, fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT * FROM %s;", name, columns,
				copied))
		} else if _, err := pool.Exec(ctx, "DROP TABLE "+copied); err != nil {
			return nil, fmt.Errorf("remove the copy of table %s: %w", name, err)
		}
	}
	const sequences = `SELECT format('SELECT setval(%L, %s, %L);', format('%I.%I', schemaname, sequencename),
			coalesce(last_value, start_value), last_value IS NOT NULL)
		FROM pg_sequences WHERE schemaname = ANY(current_schemas(false))`
	rows, _ = pool.Query(ctx, sequences) // CollectRows returns its error
	set, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list the sequences: %w", err)
	}
	kept.Tables = len(tables)
	kept.restore = strings.Join(emptied, "") + strings.Join(filled, "") + strings.Join(set, "")
	return kept, nil
}

// lockTime bounds how long tables are waited for that somebody has locked.
const lockTime = "5s"

// Restore has everything be stored as it was.
func (k *Kept) Restore(ctx context.Context) error {
	if k.restore == "" {
		return nil
	}
	_, err := k.pool.Exec(ctx, "SET lock_timeout TO '"+lockTime+"';"+k.restore+LookBriefly)
	if err != nil {
		return fmt.Errorf("have the tables as they were: %w", err)
	}
	return nil
}
