package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// windows is what the strategies share that keep a row per subject and window:
// how rows are read, set up and given back to. Rows of windows that have ended
// stay, as in any table that is never cleared.
type windows struct {
	pool  *pgxpool.Pool
	clock quota.Clock
}

// openWindows makes the table.
func openWindows(ctx context.Context, env strategies.Env) (windows, error) {
	pool, err := family.Table(ctx, env, tableWindows, sqlWindowSchema)
	return windows{pool: pool, clock: env.Clock}, err
}

// decide is the decision on a request that charge has charged to the window in force, or has
// not. It says what it left of the limit.
func (w *windows) decide(ctx context.Context, req quota.Request,
	charge func(ctx context.Context, req quota.Request, window int64) (left int64, admitted bool,
		err error)) (quota.Decision, error) {
	policy := req.Policy
	now := w.clock.Now()
	span := policy.Window.At(now)
	left, admitted, err := charge(ctx, req, span.Index)
	if err != nil {
		return quota.Decision{}, err
	}
	decision := quota.Decision{Admitted: admitted, Tier: quota.TierPostgres, Remaining: max(left, 0)}
	switch {
	case admitted:
		decision.Reservation = quota.Reservation{Request: req, Window: span.Index}
	case policy.Window.Kind.Tumbling():
		decision.RetryAfter = span.End.Sub(now)
	}
	return decision, nil
}

// firstUse makes the row of a subject that has none, unless another caller has.
func firstUse(ctx context.Context, db family.DB, req quota.Request, window int64) error {
	_, err := db.Exec(ctx, sqlWindowFirstUse, string(req.Subject), req.Policy.Name, window)
	return family.Wrapf(err, "insert on first use")
}

// Refund subtracts the reserved units from the window that was charged. It
// remembers nothing: a reservation that is refunded twice gives its units back
// twice.
func (w *windows) Refund(ctx context.Context, reservation quota.Reservation) error {
	req := reservation.Request
	if req.Policy == nil {
		return family.ErrNoReservation
	}
	_, err := w.pool.Exec(ctx, sqlWindowRefund, string(req.Subject), req.Policy.Name, reservation.Window, req.Units)
	return family.Wrapf(err, "refund")
}

// Used implements strategies.Viewer.
func (w *windows) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return reading(number(ctx, w.pool, sqlWindowUsed, subject, policy, policy.Window.At(w.clock.Now()).Index))
}

// Provision writes the rows of the window in force. A row that exists is
// replaced.
func (w *windows) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	if err := family.OneLimit(policy, grants); err != nil {
		return err
	}
	subjects, _, used := family.Columns(grants)
	_, err := w.pool.Exec(ctx, sqlWindowProvision, policy.Name, policy.Window.At(w.clock.Now()).Index, subjects, used)
	return family.Wrapf(err, "provision %d subjects", len(grants))
}

// Close implements strategies.Strategy; there is nothing to release.
func (w *windows) Close(context.Context) error { return nil }

// meta completes what the strategies on one database have in common.
func meta(m strategies.Meta) strategies.Meta {
	m.Needs = []strategies.Need{strategies.NeedPostgres}
	m.Excluded = family.NotSimulated
	return family.GivingBack(m)
}

// exact is what a strategy promises whose check and charge are one. A refund that
// is made twice, by a client that repeats it or a caller that never saw the reply,
// gives units of others back.
func exact() []quota.Clause {
	return []quota.Clause{
		quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
		family.NoFalseReject(quota.FaultLimit),
	}
}

// number runs a statement that returns one number of one subject's row; found is
// false if it returns none. More arguments follow the subject and the policy.
func number(ctx context.Context, db family.DB, sql string, subject quota.Subject, policy *quota.Policy,
	more ...any) (n int64, found bool, err error) {
	return family.Row(ctx, db, sql, append([]any{string(subject), policy.Name}, more...)...)
}

// reading is what PostgreSQL says that a subject has used.
func reading(used int64, known bool, err error) ([]quota.Reading, error) {
	return []quota.Reading{{Tier: quota.TierPostgres, Units: used, Known: known}}, family.Wrapf(err, "read what is used")
}
