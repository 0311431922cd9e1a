package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

func init() {
	family.Register(files, meta(strategies.Meta{
		Name:      "pg-row-lock",
		Guarantee: exact(),
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			windows, err := openWindows(ctx, env)
			return &rowLock{windows: windows}, err
		},
	}))
}

// rowLock is one instance of pg-row-lock.
type rowLock struct {
	windows
	// locked counts SELECT FOR UPDATE, and waited is how long they took.
	locked, waited strategies.Tally
}

// Take implements strategies.Strategy: BEGIN, SELECT FOR UPDATE, UPDATE if the
// request is admitted, and COMMIT. Two more statements make the row of a window.
func (l *rowLock) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	return l.decide(ctx, req, l.charge)
}

func (l *rowLock) charge(ctx context.Context, req quota.Request, window int64) (left int64, admitted bool, err error) {
	policy := req.Policy
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		used, err := l.lock(ctx, tx, req, window)
		if err != nil {
			return err
		}
		left = policy.Limit - used
		if req.Units > left {
			return nil
		}
		if _, err := tx.Exec(ctx, sqlRowCharge, string(req.Subject), policy.Name, window, used+req.Units); err != nil {
			return fmt.Errorf("charge: %w", err)
		}
		left = left - req.Units
		admitted = true
		return nil
	})
	return left, admitted, err
}

// lock returns what is used once the row is the transaction's own.
func (l *rowLock) lock(ctx context.Context, tx pgx.Tx, req quota.Request, window int64) (int64, error) {
	for range 2 {
		begun := l.clock.Now()
		used, known, err := number(ctx, tx, sqlRowLock, req.Subject, req.Policy, window)
		l.waited.Since(begun, l.clock)
		l.locked.Add(1)
		if err != nil {
			return 0, fmt.Errorf("lock the row: %w", err)
		}
		if known {
			return used, nil
		}
		if err := firstUse(ctx, tx, req, window); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("lock the row: it was removed after it was made")
}

// Measures implements strategies.Meter. How long callers wait for the row is not
// told apart from the round trip of the statement that waits for it, which an idle
// row shows.
func (l *rowLock) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "row locks", Unit: "locks", Value: l.locked.Load()},
		{Name: "lock wait", Unit: "us", Value: l.waited.Load() / int64(time.Microsecond)},
	}
}
