package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/postgres/schema"
)

// usage is the table that the record sets out from, with what is used and what a
// subject's limit is, as pg-check and pg-query-cache read and charge it.
type usage struct {
	pool  *pgxpool.Pool
	clock quota.Clock
	// resets is set where each window has a row.
	resets bool
}

func openUsage(ctx context.Context, env strategies.Env, name string) (usage, error) {
	if strategies.Postgres(env) == nil {
		return usage{}, errors.New(name + " needs PostgreSQL")
	}
	if err := schema.Ensure(ctx, strategies.Postgres(env), tableUsage, sqlSchema); err != nil {
		return usage{}, err
	}
	return usage{pool: strategies.Postgres(env), clock: env.Clock}, nil
}

// row is the window that the row of a window with the index has in the table.
func (u *usage) row(index int64) int64 {
	if !u.resets {
		return 0
	}
	return index
}

// now is the index of the window in force.
func (u *usage) now(p *quota.Policy) int64 { return p.Window.At(u.clock.Now()).Index }

// remaining reads what is left of a subject's limit; known is false where it has
// no row.
func (u *usage) remaining(ctx context.Context, s quota.Subject, p *quota.Policy, row int64) (n int64, known bool, err error) {
	n, known, err = number(ctx, u.pool, sqlRemaining, s, p, row)
	if err != nil {
		return 0, false, fmt.Errorf("read what remains: %w", err)
	}
	return n, known, nil
}

// firstUse makes a row with the policy's limit, unless there is one.
func (u *usage) firstUse(ctx context.Context, s quota.Subject, p *quota.Policy, row int64) error {
	if _, err := u.pool.Exec(ctx, sqlFirstUse, string(s), p.Name, row, p.Limit); err != nil {
		return fmt.Errorf("insert on first use: %w", err)
	}
	return nil
}

// charge adds units to a row, or takes them away.
func (u *usage) charge(ctx context.Context, s quota.Subject, p *quota.Policy, row, units int64) error {
	_, err := u.pool.Exec(ctx, sqlCharge, string(s), p.Name, row, units)
	return err
}

// Refund subtracts the reserved units. It remembers nothing: a reservation that
// is refunded twice gives its units back twice.
func (u *usage) Refund(ctx context.Context, r quota.Reservation) error {
	if err := u.charge(ctx, r.Request.Subject, r.Request.Policy, u.row(r.Window), -r.Request.Units); err != nil {
		return fmt.Errorf("refund: %w", err)
	}
	return nil
}

// Used implements strategies.Viewer.
func (u *usage) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	used, known, err := number(ctx, u.pool, sqlUsed, s, p, u.row(u.now(p)))
	if err != nil {
		return nil, fmt.Errorf("read what is used: %w", err)
	}
	return []quota.Reading{{Tier: quota.TierPostgres, Units: used, Known: known}}, nil
}

// Provision writes the rows. A row that exists is replaced.
func (u *usage) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	subjects := make([]string, len(grants))
	used, limits := make([]int64, len(grants)), make([]int64, len(grants))
	for i, g := range grants {
		subjects[i], used[i], limits[i] = string(g.Subject), g.Used, g.Limit
	}
	if _, err := u.pool.Exec(ctx, sqlProvision, p.Name, u.row(u.now(p)), subjects, used, limits); err != nil {
		return fmt.Errorf("provision %d subjects: %w", len(grants), err)
	}
	return nil
}

// SetLimit implements [strategies.LimitSetter], in the rows of all windows.
func (u *usage) SetLimit(ctx context.Context, p *quota.Policy, subjects []quota.Subject) error {
	_, err := u.pool.Exec(ctx, sqlSetLimit, p.Name, strategies.Names(subjects), p.Limit)
	return err
}

// Close implements strategies.Strategy; there is nothing to release.
func (u *usage) Close(context.Context) error { return nil }
