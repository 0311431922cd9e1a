package tiered

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/postgres/schema"
)

// statements are those of one kind of use.
type statements struct{ used, limit, writeBack, provision string }

type postgresSource struct {
	pool *pgxpool.Pool
	sql  [len(uses)]statements
}

func openPostgres(ctx context.Context, pool *pgxpool.Pool) (source, error) {
	if err := schema.Ensure(ctx, pool, "quotas", sqlSchema); err != nil {
		return nil, err
	}
	p := &postgresSource{pool: pool}
	for i := range uses {
		u := &uses[i]
		p.sql[i] = statements{used: u.sql(sqlUsed), limit: u.sql(sqlLimit), writeBack: u.sql(sqlWriteBack), provision: u.sql(sqlProvision)}
	}
	return p, nil
}

func (p *postgresSource) tier() quota.Tier { return quota.TierPostgres }

func (p *postgresSource) check(ctx context.Context, u *use, s quota.Subject) (bool, error) {
	var hasRoom *bool
	if err := p.pool.QueryRow(ctx, sqlCheck, string(s), u.name).Scan(&hasRoom); err != nil {
		return false, err
	}
	if hasRoom == nil {
		return false, errNoAgent
	}
	return *hasRoom, nil
}

func (p *postgresSource) used(ctx context.Context, u *use, s quota.Subject) (int64, error) {
	return p.number(ctx, p.sql[u.index].used, s)
}

func (p *postgresSource) limit(ctx context.Context, u *use, s quota.Subject) (int64, error) {
	return p.number(ctx, p.sql[u.index].limit, s)
}

func (p *postgresSource) number(ctx context.Context, sql string, s quota.Subject) (n int64, err error) {
	err = p.pool.QueryRow(ctx, sql, string(s)).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, errNoAgent
	}
	return n, err
}

// writeBack sends all statements at once and runs them in one transaction, so
// that all items are left when one fails.
func (p *postgresSource) writeBack(ctx context.Context, items []writeBack) ([]writeBack, error) {
	// Every instance locks rows in the order of agents, or two of them could wait
	// for each other. The order of one agent's items, which decides, is kept.
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b writeBack) int { return strings.Compare(string(a.subject), string(b.subject)) })
	var batch pgx.Batch
	for _, w := range sorted {
		batch.Queue(p.sql[w.use.index].writeBack, string(w.subject), w.count)
	}
	if err := p.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return items, err
	}
	return nil, nil
}

func (p *postgresSource) provision(ctx context.Context, u *use, grants []strategies.Grant) error {
	agents := make([]string, len(grants))
	used, limits := make([]int64, len(grants)), make([]int64, len(grants))
	for i, g := range grants {
		agents[i], used[i], limits[i] = string(g.Subject), g.Used, g.Limit
	}
	_, err := p.pool.Exec(ctx, p.sql[u.index].provision, agents, used, limits)
	return err
}
