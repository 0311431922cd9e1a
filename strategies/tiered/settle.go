package tiered

import (
	"context"

	"github.com/quotabench/quotabench/quota"
)

// chargesLater reports whether a request is charged when its work is done, and
// not when it is admitted.
func (in *instance) chargesLater(req quota.Request) bool { return !in.chargeFirst && req.Settles }

// Commit charges what the work took, or if the request was charged on admission,
// the difference.
func (in *instance) Commit(ctx context.Context, r quota.Reservation, actual int64) error {
	units := actual
	if !in.chargesLater(r.Request) {
		units -= r.Request.Units
	}
	return in.settle(ctx, r, units)
}

// Refund charges a negative amount, unless nothing was charged yet. It remembers
// nothing: a reservation that is refunded twice gives its units back twice.
func (in *instance) Refund(ctx context.Context, r quota.Reservation) error {
	if in.chargesLater(r.Request) && !r.Committed {
		return nil
	}
	return in.settle(ctx, r, -r.Request.Units)
}

func (in *instance) settle(ctx context.Context, r quota.Reservation, units int64) error {
	if units == 0 {
		return nil
	}
	u, err := useOf(in.uses, r.Request.Policy)
	if err != nil {
		return err
	}
	if charged, err := in.charge(ctx, u, r.Request, units); err != nil {
		if !charged {
			in.chargeFailed.Add(max(units, 0))
		}
		return err
	}
	return nil
}
