package tiered

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

var (
	//go:embed sql/schema.sql
	sqlSchema string
	//go:embed sql/check.sql
	sqlCheck string
	//go:embed sql/check_literal.sql
	sqlCheckLiteral string
	//go:embed sql/used.sql
	sqlUsed string
	//go:embed sql/limit.sql
	sqlLimit string
	//go:embed sql/counts.sql
	sqlCounts string
	//go:embed sql/charge.sql
	sqlCharge string
	//go:embed sql/write_back.sql
	sqlWriteBack string
	//go:embed sql/reset.sql
	sqlReset string
	//go:embed sql/provision.sql
	sqlProvision string
	//go:embed sql/set_limit.sql
	sqlSetLimit string
)

// errNoAgent is a check of an agent that has no row. It is no outage, and so
// nothing to fall back from.
var errNoAgent = errors.New("agent has no row in the quotas table: provision it first")

// source is the database of record. Each method but charge and writeBack is one
// statement. Reads of an agent without a row fail with errNoAgent. A kind of use
// that is misnamed fails with [strategies.ErrPrescribed] if its column of
// counts is needed.
type source interface {
	reader
	// charge adds units to the count in a transaction, and returns the new count.
	charge(ctx context.Context, u *use, s quota.Subject, units int64) (int64, error)
	// writeBack overwrites counts of one kind of use, one statement per item, in
	// the items' order per agent. It returns the items that still have to be written.
	writeBack(ctx context.Context, u *use, items []writeBack) (left []writeBack, err error)
	// counts returns what every agent has used, and its limit, in the order of agents.
	counts(ctx context.Context, u *use) ([]strategies.Grant, error)
	// reset sets every agent's count to zero and returns all agents in order.
	reset(ctx context.Context, u *use) ([]quota.Subject, error)
	// provision makes rows and replaces what this kind of use has in existing ones.
	provision(ctx context.Context, u *use, grants []strategies.Grant) error
	// setLimit gives rows that exist another limit.
	setLimit(ctx context.Context, u *use, agents []quota.Subject, limit int64) error
}

// reader answers the three questions of a miss. It is the source, or a replica that
// lags behind it.
type reader interface {
	tier() quota.Tier
	// check is the record's SQL function: whether used < limit.
	check(ctx context.Context, u *use, s quota.Subject) (bool, error)
	used(ctx context.Context, u *use, s quota.Subject) (int64, error)
	limit(ctx context.Context, u *use, s quota.Subject) (int64, error)
	// follow waits until everything that was written so far can be read.
	follow(ctx context.Context) error
}

// openReplica opens what misses read with source=replica: the store
// [strategies.NeedReplica] next to PostgreSQL, a model next to its model.
func openReplica(ctx context.Context, env strategies.Env, of source) (reader, error) {
	if m, ok := of.(*modelSource); ok {
		return m.replica(env), nil
	}
	pool, ok := env.Clients[string(strategies.NeedReplica)].(*pgxpool.Pool)
	if !ok {
		return nil, fmt.Errorf("there is no store %s", strategies.NeedReplica)
	}
	primary := of.(*postgresSource)
	r := &postgresReplica{postgresSource: &postgresSource{pool: pool, sql: primary.sql}, primary: primary.pool, clock: env.Clock}
	return r, r.follow(ctx)
}
