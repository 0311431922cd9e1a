package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// usage is the table that the record sets out from, with what is used and what a
// subject's limit is, as pg-check and pg-query-cache read and charge it.
type usage struct {
	pool  *pgxpool.Pool
	clock quota.Clock
	// resets is set if each window has a row.
	resets bool
}

func openUsage(ctx context.Context, env strategies.Env) (usage, error) {
	pool, err := family.Table(ctx, env, tableUsage, sqlSchema)
	return usage{pool: pool, clock: env.Clock}, err
}

// row is the window that the row of a window with the index has in the table.
func (u *usage) row(index int64) int64 {
	if !u.resets {
		return 0
	}
	return index
}

// now is the index of the window in force.
func (u *usage) now(policy *quota.Policy) int64 { return policy.Window.At(u.clock.Now()).Index }

// remaining reads what is left of a subject's limit; known is false if it has
// no row.
func (u *usage) remaining(ctx context.Context, subject quota.Subject, policy *quota.Policy,
	row int64) (n int64, known bool, err error) {
	n, known, err = number(ctx, u.pool, sqlRemaining, subject, policy, row)
	return n, known, family.Wrapf(err, "read what remains")
}

// firstUse makes a row with the policy's limit, unless there is one.
func (u *usage) firstUse(ctx context.Context, subject quota.Subject, policy *quota.Policy, row int64) error {
	_, err := u.pool.Exec(ctx, sqlFirstUse, string(subject), policy.Name, row, policy.Limit)
	return family.Wrapf(err, "insert on first use")
}

// charge adds units to a row, or takes them away.
func (u *usage) charge(ctx context.Context, subject quota.Subject, policy *quota.Policy, row, units int64) error {
	_, err := u.pool.Exec(ctx, sqlCharge, string(subject), policy.Name, row, units)
	return err
}

// Refund subtracts the reserved units. It remembers nothing: a reservation that
// is refunded twice gives its units back twice.
func (u *usage) Refund(ctx context.Context, reservation quota.Reservation) error {
	return family.Wrapf(u.charge(ctx, reservation.Request.Subject, reservation.Request.Policy, u.row(reservation.Window),
		-reservation.Request.Units), "refund")
}

// Used implements strategies.Viewer.
func (u *usage) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return reading(number(ctx, u.pool, sqlUsed, subject, policy, u.row(u.now(policy))))
}

// Provision writes the rows. A row that exists is replaced.
func (u *usage) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	subjects, limits, used := family.Columns(grants)
	_, err := u.pool.Exec(ctx, sqlProvision, policy.Name, u.row(u.now(policy)), subjects, used, limits)
	return family.Wrapf(err, "provision %d subjects", len(grants))
}

// SetLimit implements [strategies.LimitSetter], in the rows of all windows.
func (u *usage) SetLimit(ctx context.Context, policy *quota.Policy, subjects []quota.Subject) error {
	_, err := u.pool.Exec(ctx, sqlSetLimit, policy.Name, family.Names(subjects), policy.Limit)
	return err
}

// Close implements strategies.Strategy; there is nothing to release.
func (u *usage) Close(context.Context) error { return nil }
