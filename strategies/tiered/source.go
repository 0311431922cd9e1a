package tiered

import (
	"context"
	_ "embed"
	"errors"

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
	//go:embed sql/charge.sql
	sqlCharge string
	//go:embed sql/write_back.sql
	sqlWriteBack string
	//go:embed sql/reset.sql
	sqlReset string
	//go:embed sql/provision.sql
	sqlProvision string
)

// errNoAgent is a check of an agent that has no row. It is no outage, and so
// nothing to fall back from.
var errNoAgent = errors.New("agent has no row in the quotas table: provision it first")

// source is the database of record. Each method but charge and writeBack is one
// statement. Reads of an agent without a row fail with errNoAgent. A kind of use
// that is misnamed fails with [strategies.ErrPrescribed] where its column of
// counts is needed.
type source interface {
	tier() quota.Tier
	// check is the record's SQL function: whether used < limit.
	check(ctx context.Context, u *use, s quota.Subject) (bool, error)
	used(ctx context.Context, u *use, s quota.Subject) (int64, error)
	limit(ctx context.Context, u *use, s quota.Subject) (int64, error)
	// charge adds units to the count in a transaction, and returns the new count.
	charge(ctx context.Context, u *use, s quota.Subject, units int64) (int64, error)
	// writeBack overwrites counts of one kind of use, one statement per item, in
	// the items' order per agent. It returns the items that still have to be written.
	writeBack(ctx context.Context, u *use, items []writeBack) (left []writeBack, err error)
	// reset sets every agent's count to zero and returns all agents in order.
	reset(ctx context.Context, u *use) ([]quota.Subject, error)
	// provision makes rows and replaces what this kind of use has in existing ones.
	provision(ctx context.Context, u *use, grants []strategies.Grant) error
}

// openSource picks PostgreSQL where there is one, and its model otherwise.
func openSource(ctx context.Context, env strategies.Env) (source, error) {
	switch {
	case env.Postgres != nil:
		return openPostgres(ctx, env.Postgres)
	case env.Model != nil:
		return openModel(env.Model, env.Shared), nil
	default:
		return nil, errors.New("neither PostgreSQL nor its model is there")
	}
}
