package postgres

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

func init() {
	family.Register(files, meta(strategies.Meta{
		Name:      "pg-conditional",
		About:     strategies.About{Core: true},
		Guarantee: exact(),
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			windows, err := openWindows(ctx, env)
			return &conditional{windows}, err
		},
	}))
}

// conditional is one instance of pg-conditional.
type conditional struct{ windows }

// Take implements strategies.Strategy: one statement if the request is
// admitted, two if it is rejected, four if it is the first of its window.
func (c *conditional) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	return c.decide(ctx, req, c.charge)
}

func (c *conditional) charge(ctx context.Context, req quota.Request,
	window int64) (left int64, admitted bool, err error) {
	policy := req.Policy

	// An UPDATE that finds no row says too little: there may be none yet. After
	// the first round there is one, so of the second the answer stands.
	for range 2 {
		used, charged, err := number(ctx, c.pool, sqlWindowCharge, req.Subject, policy, window, req.Units, policy.Limit)
		if err != nil || charged {
			return policy.Limit - used, charged, family.Wrapf(err, "charge")
		}
		used, known, err := number(ctx, c.pool, sqlWindowUsed, req.Subject, policy, window)
		if err != nil {
			return 0, false, fmt.Errorf("read what is used: %w", err)
		}
		left = policy.Limit - used
		if known {
			if req.Units > left {
				break
			}
			continue // since the UPDATE the row was made, or units came back
		}
		if err := firstUse(ctx, c.pool, req, window); err != nil {
			return 0, false, err
		}
	}
	return left, false, nil
}
