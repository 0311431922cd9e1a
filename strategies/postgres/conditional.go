package postgres

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

func init() {
	family.Register(notes, strategies.Meta{
		Name:      "pg-conditional",
		Core:      true,
		Doc:       "PostgreSQL only: one UPDATE adds the units if they fit",
		Form:      strategies.Reference,
		Needs:     []strategies.Need{strategies.NeedPostgres},
		Excluded:  family.NotSimulated,
		Kinds:     family.Windowed,
		GivesBack: true,
		Counts:    quota.CountsAdmitted,
		Guarantee: exact(),
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			w, err := openWindows(ctx, env, "pg-conditional")
			if err != nil {
				return nil, err
			}
			return &conditional{w}, nil
		},
	})
}

// conditional is one instance of pg-conditional.
type conditional struct{ windows }

var (
	_ strategies.Strategy    = (*conditional)(nil)
	_ strategies.Refunder    = (*conditional)(nil)
	_ strategies.Viewer      = (*conditional)(nil)
	_ strategies.Provisioner = (*conditional)(nil)
)

// Take implements strategies.Strategy: one statement where the request is
// admitted, two where it is rejected, four where it is the first of its window.
func (c *conditional) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	p, now := req.Policy, c.clock.Now()
	span := p.Window.At(now)
	d := quota.Decision{Tier: quota.TierPostgres}

	// An UPDATE that finds no row says too little: there may be none yet. After
	// the first round there is one, so that of the second the answer stands.
	for range 2 {
		used, charged, err := number(ctx, c.pool, sqlWindowCharge, req.Subject, p, span.Index, req.Units, p.Limit)
		if err != nil {
			return quota.Decision{}, fmt.Errorf("charge: %w", err)
		}
		if charged {
			d.Admitted, d.Remaining = true, p.Limit-used
			d.Reservation = quota.Reservation{Request: req, Window: span.Index}
			return d, nil
		}
		used, known, err := number(ctx, c.pool, sqlWindowUsed, req.Subject, p, span.Index)
		if err != nil {
			return quota.Decision{}, fmt.Errorf("read what is used: %w", err)
		}
		d.Remaining = max(p.Limit-used, 0)
		if known {
			if req.Units > p.Limit-used {
				break
			}
			continue // since the UPDATE the row was made, or units came back
		}
		if err := c.firstUse(ctx, c.pool, req, span.Index); err != nil {
			return quota.Decision{}, err
		}
	}
	if p.Window.Kind.Tumbling() {
		d.RetryAfter = span.End.Sub(now)
	}
	return d, nil
}
