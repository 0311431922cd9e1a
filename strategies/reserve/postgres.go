package reserve

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed sql/schema.sql
var schemaSQL string

//go:embed sql/provision.sql
var provisionSQL string

//go:embed sql/clear.sql
var clearSQL string

//go:embed sql/add.sql
var addSQL string

//go:embed sql/remove.sql
var removeSQL string

//go:embed sql/tenants.sql
var tenantsSQL string

//go:embed sql/stored.sql
var storedSQL string

// postgres keeps the two tables in PostgreSQL, in the run's own schema.
type postgres struct{ pool *pgxpool.Pool }

func openPostgres(ctx context.Context, pool *pgxpool.Pool) (source, error) {
	if err := family.Ensure(ctx, pool, "reserve_files", schemaSQL); err != nil {
		return nil, err
	}
	return &postgres{pool}, nil
}

func (p *postgres) provision(ctx context.Context, policy string, grants []strategies.Grant) error {
	names, _, used := family.Columns(grants)
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, clearSQL, policy, names); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, provisionSQL, policy, names, used, initialFile)
		return err
	})
	return family.Wrapf(err, "setting up %d tenants", len(grants))
}

func (p *postgres) add(ctx context.Context, f file, size int64) error {
	_, err := p.pool.Exec(ctx, addSQL, f.policy, string(f.subject), f.id, size)
	return family.Wrapf(err, "storing file %s of %s", f.id, f.subject)
}

func (p *postgres) remove(ctx context.Context, f file) (size int64, ok bool, err error) {
	size, ok, err = family.Row(ctx, p.pool, removeSQL, f.policy, string(f.subject), f.id)
	return size, ok, family.Wrapf(err, "deleting file %s of %s", f.id, f.subject)
}

func (p *postgres) tenants(ctx context.Context) ([]tenant, error) {
	return listTenants(ctx, p.pool, tenantsSQL)
}

// listTenants reads policies and tenants.
func listTenants(ctx context.Context, pool *pgxpool.Pool, sql string) ([]tenant, error) {
	rows, _ := pool.Query(ctx, sql) // CollectRows returns its error
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t tenant, err error) {
		err = row.Scan(&t.policy, &t.subject)
		return t, err
	})
	return list, family.Wrapf(err, "listing tenants")
}

func (p *postgres) stored(ctx context.Context, t tenant) (sum int64, err error) {
	err = p.pool.QueryRow(ctx, storedSQL, t.policy, string(t.subject)).Scan(&sum)
	return sum, family.Wrapf(err, "adding up the files of %s", t.subject)
}
