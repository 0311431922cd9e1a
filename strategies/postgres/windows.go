package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
	"github.com/quotabench/quotabench/strategies/postgres/schema"
)

// windows is what the strategies share that keep a row per subject and window:
// how rows are read, set up and given back to. Rows of windows that have ended
// stay, as in any table that is never cleared.
type windows struct {
	pool  *pgxpool.Pool
	clock quota.Clock
}

// openWindows makes the table for the strategy with the name.
func openWindows(ctx context.Context, env strategies.Env, name string) (windows, error) {
	if strategies.Postgres(env) == nil {
		return windows{}, errors.New(name + " needs PostgreSQL")
	}
	if err := schema.Ensure(ctx, strategies.Postgres(env), tableWindows, sqlWindowSchema); err != nil {
		return windows{}, err
	}
	return windows{pool: strategies.Postgres(env), clock: env.Clock}, nil
}

// firstUse makes the row of a subject that has none, unless another caller has.
func (w *windows) firstUse(ctx context.Context, db execer, req quota.Request, window int64) error {
	if _, err := db.Exec(ctx, sqlWindowFirstUse, string(req.Subject), req.Policy.Name, window); err != nil {
		return fmt.Errorf("insert on first use: %w", err)
	}
	return nil
}

// Refund subtracts the reserved units from the window that was charged. It
// remembers nothing: a reservation that is refunded twice gives its units back
// twice.
func (w *windows) Refund(ctx context.Context, r quota.Reservation) error {
	req := r.Request
	if req.Policy == nil {
		return family.ErrNoReservation
	}
	_, err := w.pool.Exec(ctx, sqlWindowRefund, string(req.Subject), req.Policy.Name, r.Window, req.Units)
	if err != nil {
		return fmt.Errorf("refund: %w", err)
	}
	return nil
}

// Used implements strategies.Viewer.
func (w *windows) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	used, known, err := number(ctx, w.pool, sqlWindowUsed, s, p, p.Window.At(w.clock.Now()).Index)
	if err != nil {
		return nil, fmt.Errorf("read what is used: %w", err)
	}
	return []quota.Reading{{Tier: quota.TierPostgres, Units: used, Known: known}}, nil
}

// Provision writes the rows of the window in force. A row that exists is
// replaced.
func (w *windows) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	subjects, used := make([]string, len(grants)), make([]int64, len(grants))
	for i, g := range grants {
		if g.Limit != p.Limit {
			return fmt.Errorf("limit %d for %s: all subjects share the limit of policy %s, %d", g.Limit, g.Subject, p.Name, p.Limit)
		}
		subjects[i], used[i] = string(g.Subject), g.Used
	}
	index := p.Window.At(w.clock.Now()).Index
	if _, err := w.pool.Exec(ctx, sqlWindowProvision, p.Name, index, subjects, used); err != nil {
		return fmt.Errorf("provision %d subjects: %w", len(grants), err)
	}
	return nil
}

// Close implements strategies.Strategy; there is nothing to release.
func (w *windows) Close(context.Context) error { return nil }

// exact is what a strategy promises whose check and charge are one. A refund that
// is made twice, by a client that repeats it or a caller that never saw the reply,
// gives units of others back.
func exact() []quota.Clause {
	return []quota.Clause{
		quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
		family.NoFalseReject(quota.FaultLimit),
	}
}

// querier and execer are pools and transactions.
type (
	querier interface {
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	}
	execer interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	}
)

// number runs a statement that returns one number of one subject's row; found is
// false where it returns none. More arguments follow the subject and the policy.
func number(ctx context.Context, db querier, sql string, s quota.Subject, p *quota.Policy, more ...any) (n int64, found bool, err error) {
	err = db.QueryRow(ctx, sql, append([]any{string(s), p.Name}, more...)...).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return n, err == nil, err
}
