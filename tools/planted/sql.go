package planted

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// table counts in PostgreSQL: take takes one of so many units of a window.
type table struct {
	env    strategies.Env
	policy *quota.Policy
	take   func(ctx context.Context, pool *pgxpool.Pool, row row) (bool, error)
}

type row struct {
	key         string
	span, limit int64
}

// Allow implements [strategies.Allower].
func (t *table) Allow(ctx context.Context, key string) (bool, error) {
	return t.take(ctx, strategies.Postgres(t.env), row{key, t.policy.Window.At(t.env.Clock.Now()).Index, t.policy.Limit})
}

const (
	schema = `CREATE TABLE IF NOT EXISTS planted (key text, span bigint, used bigint NOT NULL, PRIMARY KEY (key, span))`
	upsert = `INSERT INTO planted AS p VALUES ($1, $2, 1) ON CONFLICT (key, span) DO UPDATE SET used = p.used + 1`
	read   = `SELECT coalesce(sum(used), 0) FROM planted WHERE key = $1 AND span = $2`
)

// conditional is one statement, which adds nothing if there is no room.
func conditional(ctx context.Context, pool *pgxpool.Pool, r row) (bool, error) {
	tag, err := pool.Exec(ctx, upsert+` WHERE p.used < $3`, r.key, r.span, r.limit)
	return err == nil && tag.RowsAffected() == 1, err
}

// querier is a pool, or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readThenWrite reads in one statement, and writes in another.
func readThenWrite(ctx context.Context, q querier, r row) (bool, error) {
	var used int64
	if err := q.QueryRow(ctx, read, r.key, r.span).Scan(&used); err != nil || used >= r.limit {
		return false, err
	}
	_, err := q.Exec(ctx, upsert, r.key, r.span)
	return err == nil, err
}

// within reads and writes in a transaction, after other statements whose arguments are the key and the span. A
// transaction that others got in the way of is tried again.
func within(level pgx.TxIsoLevel, before ...string) func(context.Context, *pgxpool.Pool, row) (bool, error) {
	return func(ctx context.Context, pool *pgxpool.Pool, r row) (ok bool, err error) {
		for range 20 {
			err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) (err error) {
				for _, statement := range before {
					_, err = tx.Exec(ctx, statement, r.key, r.span)
					if err != nil {
						return err
					}
				}
				ok, err = readThenWrite(ctx, tx, r)
				return err
			})
			var failed *pgconn.PgError
			if !errors.As(err, &failed) || failed.Code != "40001" {
				break
			}
		}
		return ok && err == nil, err
	}
}

func tables() []Limiter {
	of := func(name, wrong string, take func(context.Context, *pgxpool.Pool, row) (bool, error)) Limiter {
		meta := strategies.FromFunc(name, []quota.Kind{quota.Fixed},
			func(ctx context.Context, env strategies.Env, policy *quota.Policy) (strategies.Allower, error) {
				_, err := strategies.Postgres(env).Exec(ctx, schema)
				if err != nil { // two instances at once
					_, err = strategies.Postgres(env).Exec(ctx, schema)
				}
				return &table{env, policy, take}, err
			})
		meta.Needs = []strategies.Need{strategies.NeedPostgres}
		meta.Guarantee = []quota.Clause{quota.Exactly()}
		return Limiter{Name: name, Defect: wrong, Meta: meta}
	}
	return []Limiter{
		of("table", "", conditional),
		of("table-for-update", "", within(pgx.ReadCommitted, `INSERT INTO planted VALUES ($1, $2, 0) ON CONFLICT DO NOTHING`,
			`SELECT used FROM planted WHERE key = $1 AND span = $2 FOR UPDATE`)),
		of("table-serializable", "", within(pgx.Serializable)),
		of("table-advisory", "", within(pgx.ReadCommitted, `SELECT pg_advisory_xact_lock(hashtextextended($1, $2))`)),
		of("table-select", "it reads, and writes in another statement",
			func(ctx context.Context, pool *pgxpool.Pool, r row) (bool, error) {
				return readThenWrite(ctx, pool, r)
			}),
		of("table-transaction", "it takes a transaction for a lock", within(pgx.ReadCommitted)),
	}
}
