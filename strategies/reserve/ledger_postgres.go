package reserve

import (
	"context"
	_ "embed"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	//go:embed sql/ledger_schema.sql
	ledgerSchemaSQL string
	//go:embed sql/ledger_clear.sql
	ledgerClearSQL string
	//go:embed sql/ledger_provision.sql
	ledgerProvisionSQL string
	//go:embed sql/ledger_set_limit.sql
	ledgerSetLimitSQL string
	//go:embed sql/ledger_account.sql
	ledgerAccountSQL string
	//go:embed sql/ledger_changes.sql
	ledgerChangesSQL string
	//go:embed sql/ledger_tenants.sql
	ledgerTenantsSQL string
)

// The statements that call a function of the schema.
const (
	ledgerKeepSQL   = "SELECT id, size, stored, ended FROM ledger_keep($1, $2, $3, $4)"
	ledgerDropSQL   = "SELECT id, size, stored, ended FROM ledger_drop($1, $2, $3)"
	ledgerGiveUpSQL = "SELECT id, size, stored, ended FROM ledger_give_up($1, $2, $3)"
)

// postgresLedger keeps the tables in PostgreSQL, in the run's own schema.
type postgresLedger struct{ pool *pgxpool.Pool }

func openPostgresLedger(ctx context.Context, pool *pgxpool.Pool) (ledger, error) {
	if err := family.Ensure(ctx, pool, "ledger_files", ledgerSchemaSQL); err != nil {
		return nil, err
	}
	return &postgresLedger{pool}, nil
}

func (p *postgresLedger) provision(ctx context.Context, policy string, grants []strategies.Grant) (map[quota.Subject]account, error) {
	names, limits, used := family.Columns(grants)
	accounts := make(map[quota.Subject]account, len(grants))
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, ledgerClearSQL, policy, names); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, ledgerProvisionSQL, policy, names, limits, used, initialFile) // collect returns its error
		return collect(rows, accounts)
	})
	return accounts, family.Wrapf(err, "setting up %d tenants", len(grants))
}

// collect reads rows of accounts.
func collect(rows pgx.Rows, into map[quota.Subject]account) error {
	var name string
	var a account
	_, err := pgx.ForEachRow(rows, []any{&name, &a.limit, &a.revision, &a.stored, &a.deleted, &a.version}, func() error {
		into[quota.Subject(name)] = a
		return nil
	})
	return err
}

func (p *postgresLedger) setLimit(ctx context.Context, policy string, tenants []quota.Subject,
	limit int64) (map[quota.Subject]account, error) {
	rows, _ := p.pool.Query(ctx, ledgerSetLimitSQL, policy, family.Names(tenants), limit) // collect returns its error
	accounts := make(map[quota.Subject]account, len(tenants))
	return accounts, collect(rows, accounts)
}

// one runs a statement that changes one file.
func (p *postgresLedger) one(ctx context.Context, f file, sql string, more ...any) (c change, err error) {
	err = p.pool.QueryRow(ctx, sql, append([]any{f.policy, string(f.subject), f.id}, more...)...).Scan(&c.id, &c.size, &c.stored, &c.ended)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errUnknownTenant
	}
	return c, err
}

func (p *postgresLedger) keep(ctx context.Context, f file, size int64) (change, error) {
	c, err := p.one(ctx, f, ledgerKeepSQL, size)
	return c, family.Wrapf(err, "storing file %s of %s", f.id, f.subject)
}

func (p *postgresLedger) drop(ctx context.Context, f file) (change, error) {
	c, err := p.one(ctx, f, ledgerDropSQL)
	return c, family.Wrapf(err, "deleting file %s of %s", f.id, f.subject)
}

// many runs a statement that gives files.
func (p *postgresLedger) many(ctx context.Context, t tenant, sql string, more any) ([]change, error) {
	rows, _ := p.pool.Query(ctx, sql, t.policy, string(t.subject), more) // CollectRows returns its error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c change, err error) {
		err = row.Scan(&c.id, &c.size, &c.stored, &c.ended)
		return c, err
	})
}

func (p *postgresLedger) giveUp(ctx context.Context, t tenant, ids []string) ([]change, error) {
	list, err := p.many(ctx, t, ledgerGiveUpSQL, ids)
	return list, family.Wrapf(err, "giving up %d files of %s", len(ids), t.subject)
}

func (p *postgresLedger) changes(ctx context.Context, t tenant, after int64) ([]change, error) {
	list, err := p.many(ctx, t, ledgerChangesSQL, after)
	return list, family.Wrapf(err, "reading the changes of %s", t.subject)
}

func (p *postgresLedger) account(ctx context.Context, t tenant) (a account, ok bool, err error) {
	err = p.pool.QueryRow(ctx, ledgerAccountSQL, t.policy, string(t.subject)).Scan(&a.limit, &a.revision, &a.stored, &a.deleted, &a.version)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	return a, err == nil, family.Wrapf(err, "reading the account of %s", t.subject)
}

func (p *postgresLedger) tenants(ctx context.Context) ([]tenant, error) {
	return listTenants(ctx, p.pool, ledgerTenantsSQL)
}
