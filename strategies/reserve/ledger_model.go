package reserve

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// modelLedger keeps the tables in process.
type modelLedger struct {
	run  *strategies.Model
	rows *ledgerTables // guarded by run
}

// ledgerTables are the two tables: a row per tenant, with those of its files.
type ledgerTables struct{ tenants map[tenant]*ledgerTenant }

type ledgerTenant struct {
	account
	files map[string]*change
}

func openModelLedger(env strategies.Env) ledger {
	return &modelLedger{env.Model, strategies.SharedValue(env.Shared, "reserve.ledger", func() *ledgerTables {
		return &ledgerTables{map[tenant]*ledgerTenant{}}
	})}
}

func (m *modelLedger) provision(ctx context.Context, policy string, grants []strategies.Grant) (map[quota.Subject]account, error) {
	accounts := map[quota.Subject]account{}
	err := family.Statement(ctx, m.run, "INSERT ledger_tenants, ledger_files", func() {
		for _, g := range grants {
			t := tenant{policy, g.Subject}
			row := &ledgerTenant{account{limit: g.Limit, revision: 1}, map[string]*change{}}
			if old := m.rows.tenants[t]; old != nil {
				row.revision = old.revision + 1
			}
			if g.Used > 0 {
				row.store(initialFile, g.Used)
			}
			m.rows.tenants[t] = row
			accounts[g.Subject] = row.account
		}
	})
	return accounts, err
}

func (m *modelLedger) setLimit(ctx context.Context, policy string, tenants []quota.Subject,
	limit int64) (map[quota.Subject]account, error) {
	accounts := map[quota.Subject]account{}
	err := family.Statement(ctx, m.run, "UPDATE ledger_tenants", func() {
		for _, s := range tenants {
			if row := m.rows.tenants[tenant{policy, s}]; row != nil {
				row.limit = limit
				row.revision++
				accounts[s] = row.account
			}
		}
	})
	return accounts, err
}

func (t *ledgerTenant) store(id string, size int64) {
	t.version++
	t.stored += size
	t.files[id] = &change{id: id, size: size, stored: t.version}
}

// do runs a statement about a tenant that must be there.
func (m *modelLedger) do(ctx context.Context, sql string, t tenant, f func(row *ledgerTenant)) error {
	return m.run.Do(ctx, sql, func() error {
		row := m.rows.tenants[t]
		if row == nil {
			return errUnknownTenant
		}
		f(row)
		return nil
	})
}

func (m *modelLedger) keep(ctx context.Context, f file, size int64) (c change, err error) {
	err = m.do(ctx, "SELECT ledger_keep", f.tenant, func(row *ledgerTenant) {
		if row.files[f.id] == nil {
			row.store(f.id, size)
		}
		c = *row.files[f.id]
	})
	return c, err
}

func (m *modelLedger) drop(ctx context.Context, f file) (c change, err error) {
	err = m.do(ctx, "SELECT ledger_drop", f.tenant, func(row *ledgerTenant) {
		x := row.files[f.id]
		switch {
		case x == nil:
			x = &change{id: f.id}
			row.files[f.id] = x
		case x.stored > 0 && x.ended == 0:
			row.version++
			row.deleted += x.size
			x.ended = row.version
		}
		c = *x
	})
	return c, err
}

func (m *modelLedger) giveUp(ctx context.Context, t tenant, ids []string) (list []change, err error) {
	err = m.do(ctx, "SELECT ledger_give_up", t, func(row *ledgerTenant) {
		for _, id := range ids {
			if row.files[id] == nil {
				row.files[id] = &change{id: id}
			}
			list = append(list, *row.files[id])
		}
	})
	return list, err
}

func (m *modelLedger) changes(ctx context.Context, t tenant, after int64) (list []change, err error) {
	err = family.Statement(ctx, m.run, "SELECT ledger_files", func() {
		if row := m.rows.tenants[t]; row != nil {
			for _, c := range row.files {
				if c.stored > after || c.ended > after {
					list = append(list, *c)
				}
			}
		}
	})
	slices.SortFunc(list, func(a, b change) int { return cmp.Compare(a.id, b.id) }) // one seed, one schedule
	return list, err
}

func (m *modelLedger) account(ctx context.Context, t tenant) (a account, ok bool, err error) {
	err = family.Statement(ctx, m.run, "SELECT ledger_tenants", func() {
		if row := m.rows.tenants[t]; row != nil {
			a, ok = row.account, true
		}
	})
	return a, ok, err
}

func (m *modelLedger) tenants(ctx context.Context) (list []tenant, err error) {
	err = family.Statement(ctx, m.run, "SELECT ledger_tenants", func() {
		list = slices.SortedFunc(maps.Keys(m.rows.tenants), compareTenants)
	})
	return list, err
}
