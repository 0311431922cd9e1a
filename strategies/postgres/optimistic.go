package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

func init() {
	family.Register(files, meta(strategies.Meta{
		Name:      "pg-optimistic",
		Options:   []quota.Option{{Name: "retries", Type: "int", Min: "0", Max: "1000000", Default: "0"}},
		Guarantee: exact(),
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			windows, err := openWindows(ctx, env)
			return &optimistic{windows: windows, most: env.Options.Int("retries")}, err
		},
	}))
}

// optimistic is one instance of pg-optimistic.
type optimistic struct {
	windows
	most             int64 // retries of a request; 0 is without end
	charges, retries atomic.Int64
}

// errConflict is the failure that the record warns of.
var errConflict = fmt.Errorf("conflict of versions: %w", strategies.ErrContention)

// Take implements strategies.Strategy: two statements if no other caller comes
// in between, and two more for each one that does.
func (o *optimistic) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	return o.decide(ctx, req, o.charge)
}

func (o *optimistic) charge(ctx context.Context, req quota.Request,
	window int64) (left int64, admitted bool, err error) {
	policy := req.Policy
	for tried := int64(0); ; {
		used, version, known, err := o.read(ctx, req, window)
		if err != nil {
			return 0, false, err
		}
		if !known {
			if err := firstUse(ctx, o.pool, req, window); err != nil {
				return 0, false, err
			}
			continue
		}
		left := policy.Limit - used
		if req.Units > left {
			return left, false, nil
		}
		tag, err := o.pool.Exec(ctx, sqlVersionCharge, string(req.Subject), policy.Name, window, used+req.Units, version)
		if err != nil {
			return 0, false, fmt.Errorf("charge: %w", err)
		}
		if tag.RowsAffected() > 0 {
			o.charges.Add(1)
			return left - req.Units, true, nil
		}
		tried++
		if o.most > 0 && tried > o.most {
			return 0, false, fmt.Errorf("after %d retries: %w", o.most, errConflict)
		}
		o.retries.Add(1)
	}
}

// read returns what is used and the version of that.
func (o *optimistic) read(ctx context.Context, req quota.Request,
	window int64) (used, version int64, known bool, err error) {
	err = o.pool.QueryRow(ctx, sqlVersionRead, string(req.Subject), req.Policy.Name, window).Scan(&used, &version)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, false, nil
	}
	return used, version, err == nil, family.Wrapf(err, "read count and version")
}

// Measures implements strategies.Meter. Retries per success are the first divided
// by the second.
func (o *optimistic) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "retries", Unit: "retries", Value: o.retries.Load()},
		{Name: "charges", Unit: "charges", Value: o.charges.Load()},
	}
}
