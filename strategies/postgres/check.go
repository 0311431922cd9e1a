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
		Name:      "pg-check",
		Core:      true,
		Source:    "003 (ADR-005)",
		Doc:       "PostgreSQL only: read what remains, then add to what is used",
		Form:      strategies.Documented,
		Needs:     []strategies.Need{strategies.NeedPostgres},
		Excluded:  notSimulated,
		Kinds:     kinds,
		Reset:     strategies.ResetsMissing,
		GivesBack: true,
		Counts:    quota.CountsAdmitted,
		// Of the admitted requests take the one that reads last. It fits into what
		// it reads, and a caller that charges after that read was in flight with it.
		// Neither a repeated command nor a lost reply is tolerated: a refund that is
		// made twice gives units of others back.
		Guarantee: []quota.Clause{{
			Property:  quota.PropertyLeak,
			Tolerates: []quota.Fault{quota.FaultCrash},
			Formula:   "L + (in flight - 1) x largest cost",
			Bound:     func(p quota.Params) int64 { return max(p.InFlight-1, 0) * p.MaxCost },
		}},
		Open: openCheck,
	})
}

// check is one instance of pg-check.
type check struct {
	pool  *pgxpool.Pool
	clock quota.Clock
}

var (
	_ strategies.Strategy    = (*check)(nil)
	_ strategies.Refunder    = (*check)(nil)
	_ strategies.Viewer      = (*check)(nil)
	_ strategies.Provisioner = (*check)(nil)
)

func openCheck(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	if env.Postgres == nil {
		return nil, errors.New("pg-check needs PostgreSQL")
	}
	if err := schema.Ensure(ctx, env.Postgres, tableUsage, sqlSchema); err != nil {
		return nil, err
	}
	return &check{pool: env.Postgres, clock: env.Clock}, nil
}

// Take implements strategies.Strategy.
func (c *check) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	p := req.Policy
	remaining, known, err := number(ctx, c.pool, sqlRemaining, req.Subject, p)
	if err != nil {
		return quota.Decision{}, fmt.Errorf("read what remains: %w", err)
	}
	if !known {
		if _, err := c.pool.Exec(ctx, sqlFirstUse, string(req.Subject), p.Name, p.Limit); err != nil {
			return quota.Decision{}, fmt.Errorf("insert on first use: %w", err)
		}
		// Not read again: a caller that inserts the row at this moment is one more
		// caller between check and charge, which is the flaw to be shown.
		remaining = p.Limit
	}
	d := quota.Decision{Tier: quota.TierPostgres, Remaining: max(remaining, 0)}
	if req.Units > remaining {
		return d, nil
	}
	if _, err := c.pool.Exec(ctx, sqlCharge, string(req.Subject), p.Name, req.Units); err != nil {
		return quota.Decision{}, fmt.Errorf("charge: %w", err)
	}
	d.Admitted = true
	d.Remaining = remaining - req.Units
	d.Reservation = quota.Reservation{Request: req, Window: p.Window.At(c.clock.Now()).Index}
	return d, nil
}

// Refund subtracts the reserved units. It remembers nothing: a reservation that
// is refunded twice gives its units back twice.
func (c *check) Refund(ctx context.Context, r quota.Reservation) error {
	_, err := c.pool.Exec(ctx, sqlCharge, string(r.Request.Subject), r.Request.Policy.Name, -r.Request.Units)
	if err != nil {
		return fmt.Errorf("refund: %w", err)
	}
	return nil
}

// Used implements strategies.Viewer.
func (c *check) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	used, known, err := number(ctx, c.pool, sqlUsed, s, p)
	if err != nil {
		return nil, fmt.Errorf("read what is used: %w", err)
	}
	return []quota.Reading{{Tier: quota.TierPostgres, Units: used, Known: known}}, nil
}

// Provision writes the rows. A row that exists is replaced.
func (c *check) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	subjects := make([]string, len(grants))
	used, limits := make([]int64, len(grants)), make([]int64, len(grants))
	for i, g := range grants {
		subjects[i], used[i], limits[i] = string(g.Subject), g.Used, g.Limit
	}
	if _, err := c.pool.Exec(ctx, sqlProvision, p.Name, subjects, used, limits); err != nil {
		return fmt.Errorf("provision %d subjects: %w", len(grants), err)
	}
	return nil
}

// Close implements strategies.Strategy; there is nothing to release.
func (c *check) Close(context.Context) error { return nil }
