package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/quotabench/quotabench/explore/internal/database"
	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// makeTables has the strategy make its tables, and finds out how to empty them.
func (w *Engine) makeTables() error {
	w.ctx, w.stop = context.WithCancel(w.base)
	defer w.stop()
	if err := w.openAll(); err != nil {
		return err
	}
	if j, ok := w.instances[0].strategy.(strategies.Jobber); ok && len(j.Jobs()) > 0 {
		return &engine.UnfitError{Err: fmt.Errorf("strategy %s cannot be explored: its jobs cannot be parked on PostgreSQL",
			w.sel.Name)}
	}
	const list = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
	tables, err := w.names(list)
	if err != nil {
		return err
	}
	sequences, err := w.names("SELECT quote_literal(sequencename) FROM pg_sequences WHERE schemaname = " +
		"current_schema() ORDER BY 1")
	if err != nil {
		return err
	}
	if err := w.areEmpty(tables); err != nil {
		return err
	}
	if len(tables) == 0 {
		tables, err = w.madeLate(list)
		if err != nil {
			return err
		}
	}
	w.empty = emptying(tables, sequences)
	lowest, err := w.names(lowestOfColumns)
	if err != nil {
		return err
	}
	w.lowest = strings.Join(lowest, " UNION ALL ")
	w.tables = true
	rows, err := database.ReadRows(w.base, w.admin)
	if err != nil {
		return err
	}
	w.Run.Timeline.Stored = engine.Stored{
		Look: func() []fakeredis.Key { return rows.Look(w.ctx) },
		Row:  func(string) bool { return true },
	}
	return nil
}

// emptying are the statements that remove all rows, and have sequences begin anew.
func emptying(tables, sequences []string) string {
	statements := database.WaitForLocks
	for _, text := range tables {
		statements += "DELETE FROM " + text + ";"
	}
	for _, text := range sequences {
		statements += "SELECT setval(" + text + ", 1, false);"
	}
	return statements + database.LookBriefly
}

// lowestOfColumns gives a query for each column of numbers, of its name and its lowest value.
const lowestOfColumns = `
	SELECT format('SELECT %L, min(%I)::numeric FROM %I', table_name || '.' || column_name, column_name, table_name)
	FROM information_schema.columns JOIN pg_tables ON schemaname = table_schema AND tablename = table_name
	WHERE table_schema = current_schema()
	AND data_type IN ('smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision') ORDER BY 1`

// areEmpty is an error if a table has rows before the strategy was asked.
func (w *Engine) areEmpty(tables []string) error {
	for _, text := range tables {
		var n int64
		if err := w.admin.QueryRow(w.base, "SELECT count(*) FROM "+text).Scan(&n); err != nil {
			return fmt.Errorf("look into table %s: %w", text, err)
		}
		if n > 0 {
			return &engine.UnfitError{Err: fmt.Errorf("strategy %s cannot be explored: its table %s is not empty at the start",
				w.sel.Name, text)}
		}
	}
	return nil
}

// madeLate are the tables of a strategy that makes them when it is asked for the first time.
// What it answers is seen in schedules.
func (w *Engine) madeLate(list string) ([]string, error) {
	w.outside.Store(true)
	defer w.outside.Store(false)
	_, err := once(w, "being asked", func(ctx context.Context) (quota.Decision, error) {
		return w.instances[0].strategy.Take(ctx,
			quota.Request{Subject: engine.Subject + "-first", Policy: &w.Setup.Policy, Units: 1})
	})
	if w.hung {
		return nil, err
	}
	return w.names(list)
}

func (w *Engine) names(query string) ([]string, error) {
	rows, _ := w.admin.Query(w.base, query) // CollectRows returns its error
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, format.Wrapf(err, "look at the tables")
}
