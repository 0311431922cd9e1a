package reserve

import (
	"context"
	"errors"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
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
