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

func init() {
	strategies.Register(strategies.Meta{
		Name:      "pg-conditional",
		Core:      true,
		Doc:       "PostgreSQL only: one UPDATE adds what is asked for, on condition that it fits",
		Form:      strategies.Reference,
		Needs:     []strategies.Need{strategies.NeedPostgres},
		Excluded:  notSimulated,
		Kinds:     kinds,
		GivesBack: true,
		Counts:    quota.CountsAdmitted,
		Guarantee: []quota.Clause{
			// A refund that is made twice, by a client that repeats it or a caller that
			// never saw the reply, gives units of others back.
			quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage),
			{
				Property: quota.PropertyFalseReject,
				Formula:  "0",
				Bound:    func(quota.Params) int64 { return 0 },
			},
		},
		Open: openConditional,
	})
}

// conditional is one instance of pg-conditional. Rows of windows that have ended
// stay, as in any table that is never cleared.
type conditional struct {
	pool  *pgxpool.Pool
	clock quota.Clock
}

var (
	_ strategies.Strategy    = (*conditional)(nil)
	_ strategies.Refunder    = (*conditional)(nil)
	_ strategies.Viewer      = (*conditional)(nil)
	_ strategies.Provisioner = (*conditional)(nil)
)

func openConditional(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	if env.Postgres == nil {
		return nil, errors.New("pg-conditional needs PostgreSQL")
	}
	if err := schema.Ensure(ctx, env.Postgres, tableWindows, sqlWindowSchema); err != nil {
		return nil, err
	}
	return &conditional{pool: env.Postgres, clock: env.Clock}, nil
}

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
		if _, err := c.pool.Exec(ctx, sqlWindowFirstUse, string(req.Subject), p.Name, span.Index); err != nil {
			return quota.Decision{}, fmt.Errorf("insert on first use: %w", err)
		}
	}
	if p.Window.Kind.Tumbling() {
		d.RetryAfter = span.End.Sub(now)
	}
	return d, nil
}

// Refund subtracts the reserved units from the window that was charged. It
// remembers nothing: a reservation that is refunded twice gives its units back
// twice.
func (c *conditional) Refund(ctx context.Context, r quota.Reservation) error {
	req := r.Request
	if req.Policy == nil {
		return errors.New("refund of a reservation that no admitted request made")
	}
	_, err := c.pool.Exec(ctx, sqlWindowRefund, string(req.Subject), req.Policy.Name, r.Window, req.Units)
	if err != nil {
		return fmt.Errorf("refund: %w", err)
	}
	return nil
}

// Used implements strategies.Viewer.
func (c *conditional) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	used, known, err := number(ctx, c.pool, sqlWindowUsed, s, p, p.Window.At(c.clock.Now()).Index)
	if err != nil {
		return nil, fmt.Errorf("read what is used: %w", err)
	}
	return []quota.Reading{{Tier: quota.TierPostgres, Units: used, Known: known}}, nil
}

// Provision writes the rows of the window in force. A row that exists is
// replaced.
func (c *conditional) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	subjects, used := make([]string, len(grants)), make([]int64, len(grants))
	for i, g := range grants {
		if g.Limit != p.Limit {
			return fmt.Errorf("limit %d for %s: all subjects share the limit of policy %s, %d", g.Limit, g.Subject, p.Name, p.Limit)
		}
		subjects[i], used[i] = string(g.Subject), g.Used
	}
	index := p.Window.At(c.clock.Now()).Index
	if _, err := c.pool.Exec(ctx, sqlWindowProvision, p.Name, index, subjects, used); err != nil {
		return fmt.Errorf("provision %d subjects: %w", len(grants), err)
	}
	return nil
}

// Close implements strategies.Strategy; there is nothing to release.
func (c *conditional) Close(context.Context) error { return nil }
