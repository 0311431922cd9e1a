package baseline

import (
	"context"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

var unlimitedMeta = strategies.Meta{
	Name:      "unlimited",
	About:     strategies.About{Core: true, Control: strategies.ControlOpen},
	Kinds:     everyKind,
	GivesBack: true,
	Counts:    quota.CountsNothing,
	Guarantee: []quota.Clause{noFalseReject},
	Open: func(context.Context, strategies.Env) (strategies.Strategy, error) {
		return unlimited{}, nil
	},
}

// unlimited keeps no count, so there is nothing to settle either; it takes
// part in workloads that do.
type unlimited struct{}

// Take implements [strategies.Strategy].
func (unlimited) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if err := ctx.Err(); err != nil {
		return quota.Decision{}, err
	}
	return quota.Decision{
		Admitted: true, Tier: quota.TierProcess, Remaining: -1,
		Reservation: quota.Reservation{Request: req},
	}, nil
}

// Refund implements [strategies.Refunder].
func (unlimited) Refund(ctx context.Context, _ quota.Reservation) error { return ctx.Err() }

// Commit implements [strategies.Committer].
func (unlimited) Commit(ctx context.Context, _ quota.Reservation, _ int64) error { return ctx.Err() }

// Close implements [strategies.Strategy].
func (unlimited) Close(context.Context) error { return nil }
