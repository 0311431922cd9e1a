package reserve

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

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
		for _, g := range grants {
			t := tenant{policy, g.Subject}
			m.rows.known[t] = true
			delete(m.rows.files, t)
			if g.Used > 0 {
				m.rows.files[t] = map[string]int64{initialFile: g.Used}
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
