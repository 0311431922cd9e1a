package reserve

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// account is a tenant's row: what its changes up to a number add up to.
type account struct {
	limit    int64
	revision int64 // how often the limit has been set
	// stored and deleted are units, ever.
	stored, deleted int64
	version         int64 // number of the last change
}

// change is a file's row: the numbers of the changes that stored and that deleted
// it, 0 for none. A file that was given up before it was stored has neither, and
// never will.
type change struct {
	id            string
	size          int64
	stored, ended int64
}

// ledger is the database of record of lua-reserve-hardened. It numbers the changes
// of each tenant without a gap, in the order in which they become visible. Each
// method is one statement, except provision. All but provision can be repeated.
type ledger interface {
	// provision replaces all that the subjects have by a single file of the units
	// used at the start, and returns their accounts.
	provision(ctx context.Context, policy string, grants []strategies.Grant) (map[quota.Subject]account, error)
	// setLimit gives tenants another limit, and returns the accounts of those that are there.
	setLimit(ctx context.Context, policy string, tenants []quota.Subject, limit int64) (map[quota.Subject]account, error)
	// keep stores a file, unless it was stored, deleted or given up before.
	keep(ctx context.Context, f file, size int64) (change, error)
	// drop deletes a file, or gives it up.
	drop(ctx context.Context, f file) (change, error)
	// giveUp gives those of the files up that were not stored, and returns all.
	giveUp(ctx context.Context, t tenant, ids []string) ([]change, error)
	// changes returns the files that changed after the change of that number.
	changes(ctx context.Context, t tenant, after int64) ([]change, error)
	// account of a tenant; ok is false if there is none.
	account(ctx context.Context, t tenant) (a account, ok bool, err error)
	tenants(ctx context.Context) ([]tenant, error)
}

// errUnknownTenant is what settling for a tenant gives that the database lacks.
var errUnknownTenant = errors.New("the database has no such tenant")

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

func (m *modelLedger) provision(ctx context.Context, policy string,
	grants []strategies.Grant) (map[quota.Subject]account, error) {
	accounts := map[quota.Subject]account{}
	err := family.Statement(ctx, m.run, "INSERT ledger_tenants, ledger_files", func() {
		for _, grant := range grants {
			t := tenant{policy, grant.Subject}
			row := &ledgerTenant{account{limit: grant.Limit, revision: 1}, map[string]*change{}}
			if old := m.rows.tenants[t]; old != nil {
				row.revision = old.revision + 1
			}
			if grant.Used > 0 {
				row.store(initialFile, grant.Used)
			}
			m.rows.tenants[t] = row
			accounts[grant.Subject] = row.account
		}
	})
	return accounts, err
}

func (m *modelLedger) setLimit(ctx context.Context, policy string, tenants []quota.Subject,
	limit int64) (map[quota.Subject]account, error) {
	accounts := map[quota.Subject]account{}
	err := family.Statement(ctx, m.run, "UPDATE ledger_tenants", func() {
		for _, subject := range tenants {
			if row := m.rows.tenants[tenant{policy, subject}]; row != nil {
				row.limit = limit
				row.revision++
				accounts[subject] = row.account
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
			for _, change := range row.files {
				if change.stored > after || change.ended > after {
					list = append(list, *change)
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
			a = row.account
			ok = true
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

var (
	//go:embed sql/ledger_schema.sql
	ledgerSchemaSQL string
	//go:embed sql/ledger_clear.sql
	ledgerClearSQL string
	//go:embed sql/ledger_provision.sql
	ledgerProvisionSQL string
	//go:embed sql/ledger_set_limit.sql
	ledgerSetLimitSQL string
	//go:embed sql/ledger_account.sql
	ledgerAccountSQL string
	//go:embed sql/ledger_changes.sql
	ledgerChangesSQL string
	//go:embed sql/ledger_tenants.sql
	ledgerTenantsSQL string
)

// The statements that call a function of the schema.
const (
	ledgerKeepSQL   = "SELECT id, size, stored, ended FROM ledger_keep($1, $2, $3, $4)"
	ledgerDropSQL   = "SELECT id, size, stored, ended FROM ledger_drop($1, $2, $3)"
	ledgerGiveUpSQL = "SELECT id, size, stored, ended FROM ledger_give_up($1, $2, $3)"
)

// postgresLedger keeps the tables in PostgreSQL, in the run's own schema.
type postgresLedger struct{ pool *pgxpool.Pool }

func openPostgresLedger(ctx context.Context, pool *pgxpool.Pool) (ledger, error) {
	return &postgresLedger{pool}, family.Ensure(ctx, pool, "ledger_files", ledgerSchemaSQL)
}

func (p *postgresLedger) provision(ctx context.Context, policy string,
	grants []strategies.Grant) (map[quota.Subject]account, error) {
	names, limits, used := family.Columns(grants)
	accounts := make(map[quota.Subject]account, len(grants))
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, ledgerClearSQL, policy, names); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, ledgerProvisionSQL, policy, names, limits, used, initialFile) // collect returns its error
		return collect(rows, accounts)
	})
	return accounts, family.Wrapf(err, "setting up %d tenants", len(grants))
}

// collect reads rows of accounts.
func collect(rows pgx.Rows, into map[quota.Subject]account) error {
	var name string
	var a account
	_, err := pgx.ForEachRow(rows, []any{&name, &a.limit, &a.revision, &a.stored, &a.deleted, &a.version}, func() error {
		into[quota.Subject(name)] = a
		return nil
	})
	return err
}

func (p *postgresLedger) setLimit(ctx context.Context, policy string, tenants []quota.Subject,
	limit int64) (map[quota.Subject]account, error) {
	rows, _ := p.pool.Query(ctx, ledgerSetLimitSQL, policy, family.Names(tenants), limit) // collect returns its error
	accounts := make(map[quota.Subject]account, len(tenants))
	return accounts, collect(rows, accounts)
}

// one runs a statement that changes one file.
func (p *postgresLedger) one(ctx context.Context, f file, sql string, more ...any) (c change, err error) {
	err = p.pool.QueryRow(ctx, sql, append([]any{f.policy, string(f.subject), f.id}, more...)...).Scan(&c.id, &c.size,
		&c.stored, &c.ended)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errUnknownTenant
	}
	return c, err
}

func (p *postgresLedger) keep(ctx context.Context, f file, size int64) (change, error) {
	c, err := p.one(ctx, f, ledgerKeepSQL, size)
	return c, family.Wrapf(err, "storing file %s of %s", f.id, f.subject)
}

func (p *postgresLedger) drop(ctx context.Context, f file) (change, error) {
	c, err := p.one(ctx, f, ledgerDropSQL)
	return c, family.Wrapf(err, "deleting file %s of %s", f.id, f.subject)
}

// many runs a statement that gives files.
func (p *postgresLedger) many(ctx context.Context, t tenant, sql string, more any) ([]change, error) {
	rows, _ := p.pool.Query(ctx, sql, t.policy, string(t.subject), more) // CollectRows returns its error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c change, err error) {
		err = row.Scan(&c.id, &c.size, &c.stored, &c.ended)
		return c, err
	})
}

func (p *postgresLedger) giveUp(ctx context.Context, t tenant, ids []string) ([]change, error) {
	list, err := p.many(ctx, t, ledgerGiveUpSQL, ids)
	return list, family.Wrapf(err, "giving up %d files of %s", len(ids), t.subject)
}

func (p *postgresLedger) changes(ctx context.Context, t tenant, after int64) ([]change, error) {
	list, err := p.many(ctx, t, ledgerChangesSQL, after)
	return list, family.Wrapf(err, "reading the changes of %s", t.subject)
}

func (p *postgresLedger) account(ctx context.Context, t tenant) (a account, ok bool, err error) {
	err = p.pool.QueryRow(ctx, ledgerAccountSQL, t.policy, string(t.subject)).Scan(&a.limit, &a.revision, &a.stored,
		&a.deleted, &a.version)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	return a, err == nil, family.Wrapf(err, "reading the account of %s", t.subject)
}

func (p *postgresLedger) tenants(ctx context.Context) ([]tenant, error) {
	return listTenants(ctx, p.pool, ledgerTenantsSQL)
}
