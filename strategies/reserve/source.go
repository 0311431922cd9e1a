package reserve

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// tenant is a row of the table of tenants. Subjects of different policies are
// different tenants.
type tenant struct {
	policy  string
	subject quota.Subject
}

// file names a row of the table of files.
type file struct {
	tenant
	id string
}

// compareTenants orders tenants as the statements for PostgreSQL do: one seed, one schedule.
func compareTenants(a, b tenant) int {
	return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.subject, b.subject))
}

// initialFile is the id of the file that an operator's grant stands for.
const initialFile = "initial"

// requestFile begins the ids of the files that requests become.
const requestFile = "request-"

func fileOf(reservation quota.Reservation) file {
	return file{
		tenant{reservation.Request.Policy.Name, reservation.Request.Subject},
		requestFile + strconv.FormatUint(reservation.Request.ID, 10),
	}
}

// source is the database of record: which tenants there are, and which files they
// have stored. Each method is one statement, except provision.
type source interface {
	// provision makes the subjects tenants, each with a single file of the units
	// used at the start.
	provision(ctx context.Context, policy string, grants []strategies.Grant) error
	// add stores a file; one of the same id is an error.
	add(ctx context.Context, f file, size int64) error
	// remove deletes a file and returns its size; ok is false if there is none.
	remove(ctx context.Context, f file) (size int64, ok bool, err error)
	tenants(ctx context.Context) ([]tenant, error)
	// stored is the size of all files of a tenant that are not deleted.
	stored(ctx context.Context, t tenant) (int64, error)
}

var urlOption = quota.Option{Name: "url-fail-share", Type: "float", Default: "0", Min: "0", Max: "1"}

// urls is the step of ADR-RM-3 between reserving and answering: the application
// makes the URL that its client uploads to. It asks no store. What is modelled is
// that it fails for a share of the requests.
type urls struct {
	start uint64 // of the random stream, of which each request has its own number
	share float64
}

func newURLs(env strategies.Env) urls {
	u := urls{share: env.Options.Float("url-fail-share")}
	if u.share > 0 {
		u.start = env.Rand.Uint64()
	}
	return u
}

// make answers an error if making the URL fails. Which requests those are
// follows from their IDs, whatever the order in which they come.
func (u urls) make(req quota.Request) error {
	if u.share == 0 || rand.New(rand.NewPCG(u.start, req.ID)).Float64() >= u.share {
		return nil
	}
	return fmt.Errorf("making the upload's URL failed: %w", strategies.ErrPrescribed)
}

// model keeps the two tables in process.
type model struct {
	run  *strategies.Model
	rows *tables // guarded by run
}

// tables: per tenant, the sizes of its available files by id. A deleted file's
// row is of no further use and goes.
type tables struct {
	files map[tenant]map[string]int64
	// known are the tenants; files may also belong to others.
	known map[tenant]bool
}

func openModel(env strategies.Env) source {
	return &model{env.Model, strategies.SharedValue(env.Shared, "reserve.tables", func() *tables {
		return &tables{files: map[tenant]map[string]int64{}, known: map[tenant]bool{}}
	})}
}

func (m *model) provision(ctx context.Context, policy string, grants []strategies.Grant) error {
	return family.Statement(ctx, m.run, "INSERT reserve_tenants, reserve_files", func() {
		for _, grant := range grants {
			t := tenant{policy, grant.Subject}
			m.rows.known[t] = true
			delete(m.rows.files, t)
			if grant.Used > 0 {
				m.rows.files[t] = map[string]int64{initialFile: grant.Used}
			}
		}
	})
}

func (m *model) add(ctx context.Context, f file, size int64) error {
	return m.run.Do(ctx, "INSERT reserve_files", func() error {
		files := m.rows.files[f.tenant]
		if files == nil {
			files = map[string]int64{}
			m.rows.files[f.tenant] = files
		}
		if _, ok := files[f.id]; ok {
			return fmt.Errorf("storing file %s of %s: it exists", f.id, f.subject)
		}
		files[f.id] = size
		return nil
	})
}

func (m *model) remove(ctx context.Context, f file) (size int64, ok bool, err error) {
	err = family.Statement(ctx, m.run, "UPDATE reserve_files", func() {
		size, ok = m.rows.files[f.tenant][f.id]
		delete(m.rows.files[f.tenant], f.id)
	})
	return size, ok, err
}

func (m *model) tenants(ctx context.Context) (list []tenant, err error) {
	err = family.Statement(ctx, m.run, "SELECT reserve_tenants", func() {
		list = slices.SortedFunc(maps.Keys(m.rows.known), compareTenants)
	})
	return list, err
}

func (m *model) stored(ctx context.Context, t tenant) (sum int64, err error) {
	err = family.Statement(ctx, m.run, "SELECT sum(size) reserve_files", func() {
		for _, size := range m.rows.files[t] {
			sum += size
		}
	})
	return sum, err
}

//go:embed sql/schema.sql
var schemaSQL string

//go:embed sql/provision.sql
var provisionSQL string

//go:embed sql/clear.sql
var clearSQL string

//go:embed sql/add.sql
var addSQL string

//go:embed sql/remove.sql
var removeSQL string

//go:embed sql/tenants.sql
var tenantsSQL string

//go:embed sql/stored.sql
var storedSQL string

// postgres keeps the two tables in PostgreSQL, in the run's own schema.
type postgres struct{ pool *pgxpool.Pool }

func openPostgres(ctx context.Context, pool *pgxpool.Pool) (source, error) {
	return &postgres{pool}, family.Ensure(ctx, pool, "reserve_files", schemaSQL)
}

func (p *postgres) provision(ctx context.Context, policy string, grants []strategies.Grant) error {
	names, _, used := family.Columns(grants)
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, clearSQL, policy, names); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, provisionSQL, policy, names, used, initialFile)
		return err
	})
	return family.Wrapf(err, "setting up %d tenants", len(grants))
}

func (p *postgres) add(ctx context.Context, f file, size int64) error {
	_, err := p.pool.Exec(ctx, addSQL, f.policy, string(f.subject), f.id, size)
	return family.Wrapf(err, "storing file %s of %s", f.id, f.subject)
}

func (p *postgres) remove(ctx context.Context, f file) (size int64, ok bool, err error) {
	size, ok, err = family.Row(ctx, p.pool, removeSQL, f.policy, string(f.subject), f.id)
	return size, ok, family.Wrapf(err, "deleting file %s of %s", f.id, f.subject)
}

func (p *postgres) tenants(ctx context.Context) ([]tenant, error) {
	return listTenants(ctx, p.pool, tenantsSQL)
}

// listTenants reads policies and tenants.
func listTenants(ctx context.Context, pool *pgxpool.Pool, sql string) ([]tenant, error) {
	rows, _ := pool.Query(ctx, sql) // CollectRows returns its error
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t tenant, err error) {
		err = row.Scan(&t.policy, &t.subject)
		return t, err
	})
	return list, family.Wrapf(err, "listing tenants")
}

func (p *postgres) stored(ctx context.Context, t tenant) (sum int64, err error) {
	err = p.pool.QueryRow(ctx, storedSQL, t.policy, string(t.subject)).Scan(&sum)
	return sum, family.Wrapf(err, "adding up the files of %s", t.subject)
}
