package tiered

import (
	"context"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// row is one agent's: a count and a limit per kind of use.
type row struct{ used, limit [len(uses)]int64 }

// defaultLimits are those of the table's columns, in the order of uses.
var defaultLimits = [len(uses)]int64{1_000, 500_000, 100, 10_737_418_240}

// table is read and written inside statements of the model only, which run one
// at a time.
type table map[quota.Subject]*row

type modelSource struct {
	model *strategies.Model
	rows  table
}

func openModel(m *strategies.Model, shared *strategies.Shared) source {
	rows := strategies.SharedValue(shared, "tiered.quotas", func() table { return table{} })
	return &modelSource{model: m, rows: rows}
}

func (m *modelSource) tier() quota.Tier { return quota.TierModel }

// read runs f on an agent's row as one statement.
func (m *modelSource) read(ctx context.Context, sql string, s quota.Subject, f func(*row)) error {
	return m.model.Do(ctx, sql, func() error {
		r, ok := m.rows[s]
		if !ok {
			return errNoAgent
		}
		f(r)
		return nil
	})
}

func (m *modelSource) check(ctx context.Context, u *use, s quota.Subject) (hasRoom bool, err error) {
	err = m.read(ctx, "SELECT check_quota", s, func(r *row) { hasRoom = r.used[u.index] < r.limit[u.index] })
	return hasRoom, err
}

func (m *modelSource) used(ctx context.Context, u *use, s quota.Subject) (n int64, err error) {
	err = m.read(ctx, "SELECT "+u.usedColumn, s, func(r *row) { n = r.used[u.index] })
	return n, err
}

func (m *modelSource) limit(ctx context.Context, u *use, s quota.Subject) (n int64, err error) {
	err = m.read(ctx, "SELECT "+u.limitColumn, s, func(r *row) { n = r.limit[u.index] })
	return n, err
}

func (m *modelSource) writeBack(ctx context.Context, items []writeBack) ([]writeBack, error) {
	for i, w := range items {
		err := m.model.Do(ctx, "UPDATE quotas SET "+w.use.usedColumn, func() error {
			// Like an UPDATE, it does nothing where there is no row.
			if r, ok := m.rows[w.subject]; ok {
				r.used[w.use.index] = w.count
			}
			return nil
		})
		if err != nil {
			return items[i:], err
		}
	}
	return nil, nil
}

func (m *modelSource) provision(ctx context.Context, u *use, grants []strategies.Grant) error {
	return m.model.Do(ctx, "INSERT INTO quotas", func() error {
		for _, g := range grants {
			r, ok := m.rows[g.Subject]
			if !ok {
				r = &row{limit: defaultLimits}
				m.rows[g.Subject] = r
			}
			r.used[u.index], r.limit[u.index] = g.Used, g.Limit
		}
		return nil
	})
}
