package reserve

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/postgres/schema"
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
	if err := schema.Ensure(ctx, pool, "reserve_files", schemaSQL); err != nil {
		return nil, err
	}
	return &postgres{pool}, nil
}

func (p *postgres) provision(ctx context.Context, policy string, grants []strategies.Grant) error {
	names, used := make([]string, len(grants)), make([]int64, len(grants))
	for i, g := range grants {
		names[i], used[i] = string(g.Subject), g.Used
	}
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, clearSQL, policy, names); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, provisionSQL, policy, names, used, initialFile)
		return err
	})
	if err != nil {
		return fmt.Errorf("setting up %d tenants: %w", len(grants), err)
	}
	return nil
}

func (p *postgres) add(ctx context.Context, f file, size int64) error {
	if _, err := p.pool.Exec(ctx, addSQL, f.policy, string(f.subject), f.id, size); err != nil {
		return fmt.Errorf("storing file %s of %s: %w", f.id, f.subject, err)
	}
	return nil
}

func (p *postgres) remove(ctx context.Context, f file) (size int64, ok bool, err error) {
	err = p.pool.QueryRow(ctx, removeSQL, f.policy, string(f.subject), f.id).Scan(&size)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("deleting file %s of %s: %w", f.id, f.subject, err)
	}
	return size, true, nil
}

func (p *postgres) tenants(ctx context.Context) ([]tenant, error) {
	return listTenants(ctx, p.pool, tenantsSQL)
}

// listTenants reads policies and tenants.
func listTenants(ctx context.Context, pool *pgxpool.Pool, sql string) ([]tenant, error) {
	rows, err := pool.Query(ctx, sql)
	if err != nil {
		return nil, fmt.Errorf("listing tenants: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t tenant, err error) {
		err = row.Scan(&t.policy, &t.subject)
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing tenants: %w", err)
	}
	return list, nil
}

func (p *postgres) stored(ctx context.Context, t tenant) (sum int64, err error) {
	if err := p.pool.QueryRow(ctx, storedSQL, t.policy, string(t.subject)).Scan(&sum); err != nil {
		return 0, fmt.Errorf("adding up the files of %s: %w", t.subject, err)
	}
	return sum, nil
}
