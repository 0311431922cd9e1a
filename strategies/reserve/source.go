package reserve

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
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

func fileOf(r quota.Reservation) file {
	return file{
		tenant{r.Request.Policy.Name, r.Request.Subject},
		requestFile + strconv.FormatUint(r.Request.ID, 10),
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
