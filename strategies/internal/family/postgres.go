package family

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// DB is a pool, a connection or a transaction.
type DB interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Row runs a statement that returns one number; known is false if it returns none.
func Row(ctx context.Context, db DB, sql string, args ...any) (n int64, known bool, err error) {
	err = db.QueryRow(ctx, sql, args...).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return n, err == nil, err
}

// lockID is the advisory lock under which tables are made. It is a constant of
// ours, and held for milliseconds, so two runs in one database may share it.
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
	return Wrapf(err, "create table %s", table)
}

// Table is the strategy's PostgreSQL, in which the script has made the table.
func Table(ctx context.Context, env strategies.Env, table, script string) (*pgxpool.Pool, error) {
	pool := strategies.Postgres(env)
	if pool == nil {
		return nil, errors.New("there is no PostgreSQL")
	}
	return pool, Ensure(ctx, pool, table, script)
}

// OpenSource opens the database of record: PostgreSQL if there is one, and otherwise its model.
func OpenSource[S any](ctx context.Context, env strategies.Env,
	postgres func(context.Context, *pgxpool.Pool) (S, error),
	model func(strategies.Env) S) (source S, err error) {
	switch pool := strategies.Postgres(env); {
	case pool != nil:
		return postgres(ctx, pool)
	case env.Model != nil:
		return model(env), nil
	}
	return source, errors.New("neither PostgreSQL nor its model is there")
}

// Statement is [strategies.Model.Do] for what cannot fail by itself.
func Statement(ctx context.Context, model *strategies.Model, sql string, f func()) error {
	return model.Do(ctx, sql, func() error {
		f()
		return nil
	})
}

// Names are subjects as PostgreSQL's driver takes them.
func Names(subjects []quota.Subject) []string {
	names := make([]string, len(subjects))
	for i, subject := range subjects {
		names[i] = string(subject)
	}
	return names
}

// Columns are grants as PostgreSQL's driver takes them.
func Columns(grants []strategies.Grant) (names []string, limits, used []int64) {
	for _, grant := range grants {
		names = append(names, string(grant.Subject))
		limits = append(limits, grant.Limit)
		used = append(used, grant.Used)
	}
	return names, limits, used
}
