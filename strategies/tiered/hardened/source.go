package hardened

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	//go:embed sql/schema.sql
	sqlSchema string
	//go:embed sql/draw.sql
	sqlDraw string
	//go:embed sql/settle.sql
	sqlSettle string
	//go:embed sql/drawn.sql
	sqlDrawn string
	//go:embed sql/provision.sql
	sqlProvision string
	//go:embed sql/set_limit.sql
	sqlSetLimit string
	//go:embed sql/purge.sql
	sqlPurge string
	//go:embed sql/enroll.sql
	sqlEnroll string
	//go:embed sql/recalled.sql
	sqlRecalled string
	//go:embed sql/return.sql
	sqlReturn string
)

// source is the database of record. Each method is one statement.
type source interface {
	tier() quota.Tier
	// draw charges an account.
	draw(ctx context.Context, a *account, w want) (drawn, error)
	// enroll says that a region has a Redis of its own.
	enroll(ctx context.Context, region string) error
	// recalled are accounts of which a region is asked to return what it holds.
	recalled(ctx context.Context, region string) ([]recall, error)
	// giveBack takes back what a region held of accounts.
	giveBack(ctx context.Context, region string, list []recall) error
	// settle sets what a request holds that has taken so many units. What is closed
	// holds nothing, for good.
	settle(ctx context.Context, a *account, request uint64, taken, held int64, closed bool) error
	// drawn is what an account was charged for; known is false if it never was.
	drawn(ctx context.Context, a *account) (units int64, known bool, err error)
	// provision sets limits and use. All grants are of the window of a.
	provision(ctx context.Context, a *account, grants []strategies.Grant) error
	// setLimit sets the limit of agents and leaves their use alone.
	setLimit(ctx context.Context, policy string, agents []quota.Subject, units int64) error
	// purge removes windows that ended before a moment and says whether there were any.
	purge(ctx context.Context, before time.Time) (bool, error)
}

// want is what a draw asks for.
type want struct {
	// units are charged as far as they are there, or all or none if whole is set.
	units int64
	whole bool
	// region that keeps them, empty if there is but one Redis. If others have drawn
	// too, the account's last near units are charged as they are asked for: up to
	// batch, and none if least are not there.
	region             string
	least, batch, near int64
}

// drawn is what a draw got.
type drawn struct {
	granted, left int64
	// several regions have a Redis.
	several bool
}

// recall is an account whose credit in a region is asked for.
type recall struct {
	account
	// draws of the region when it was asked.
	draws int64
	// units of its credit.
	units int64
}

// recallBatch bounds the accounts of one round.
const recallBatch = 1_000

type postgresSource struct{ pool *pgxpool.Pool }

func openPostgres(ctx context.Context, pool *pgxpool.Pool) (source, error) {
	return &postgresSource{pool}, family.Ensure(ctx, pool, "escrow_usage", sqlSchema)
}

func (p *postgresSource) tier() quota.Tier { return quota.TierPostgres }

// end is the window's end as the table has it.
func (a *account) end() *time.Time {
	if a.ends.IsZero() {
		return nil
	}
	return &a.ends
}

func (p *postgresSource) draw(ctx context.Context, a *account, w want) (d drawn, err error) {
	err = p.pool.QueryRow(ctx, sqlDraw, string(a.subject), a.policy, a.window, w.units, w.whole, a.limit, a.end(),
		w.region, w.least, w.batch, w.near).Scan(&d.granted, &d.left, &d.several)
	return d, family.Wrapf(err, "draw %d units", w.units)
}

func (p *postgresSource) enroll(ctx context.Context, region string) error {
	_, err := p.pool.Exec(ctx, sqlEnroll, region)
	return err
}

func (p *postgresSource) recalled(ctx context.Context, region string) ([]recall, error) {
	rows, _ := p.pool.Query(ctx, sqlRecalled, region, recallBatch) // CollectRows returns its error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r recall, err error) {
		err = row.Scan((*string)(&r.subject), &r.policy, &r.window, &r.draws)
		return r, err
	})
}

func (p *postgresSource) giveBack(ctx context.Context, region string, list []recall) error {
	agents := make([]string, len(list))
	policies := make([]string, len(list))
	spans := make([]int64, len(list))
	draws := make([]int64, len(list))
	units := make([]int64, len(list))
	for i, recall := range list {
		agents[i] = string(recall.subject)
		policies[i] = recall.policy
		spans[i] = recall.window
		draws[i] = recall.draws
		units[i] = recall.units
	}
	_, err := p.pool.Exec(ctx, sqlReturn, region, agents, policies, spans, draws, units)
	return err
}

func (p *postgresSource) settle(ctx context.Context, a *account, request uint64, taken, held int64, closed bool) error {
	_, err := p.pool.Exec(ctx, sqlSettle, string(a.subject), a.policy, a.window, int64(request), taken, held, closed,
		a.end())
	return family.Wrapf(err, "settle request %d", request)
}

func (p *postgresSource) drawn(ctx context.Context, a *account) (units int64, known bool, err error) {
	return family.Row(ctx, p.pool, sqlDrawn, string(a.subject), a.policy, a.window)
}

func (p *postgresSource) provision(ctx context.Context, a *account, grants []strategies.Grant) error {
	agents, limits, used := family.Columns(grants)
	_, err := p.pool.Exec(ctx, sqlProvision, a.policy, a.window, agents, limits, used, a.end())
	return err
}

func (p *postgresSource) purge(ctx context.Context, before time.Time) (bool, error) {
	var rows int64
	err := p.pool.QueryRow(ctx, sqlPurge, before).Scan(&rows)
	return rows > 0, err
}

func (p *postgresSource) setLimit(ctx context.Context, policy string, agents []quota.Subject, units int64) error {
	_, err := p.pool.Exec(ctx, sqlSetLimit, policy, family.Names(agents), units)
	return err
}

// account is one agent's use under one policy in one window.
type account struct {
	subject quota.Subject
	policy  string
	window  int64
	// limit of the policy in units. An agent's own, if an operator has set one, is
	// in the database and takes its place.
	limit int64
	// ends is when the window does; zero is never.
	ends time.Time
}

func accountAt(policy *quota.Policy, subject quota.Subject, now time.Time) account {
	span := policy.Window.At(now)
	a := account{subject: subject, policy: policy.Name, window: span.Index, limit: policy.Limit}
	if policy.Window.Kind.Tumbling() {
		a.ends = span.End
	}
	return a
}

// key of the account's hash.
func (a account) key(prefix string) string {
	return prefix + "escrow:" + a.policy + ":" + strconv.FormatInt(a.window, 10) + ":" + string(a.subject)
}

// grace is how long a hash outlives its window, for requests that come late.
const grace = 5 * time.Second

// expiry is when the hash goes, in milliseconds since 1970; 0 is never.
func (a account) expiry() int64 {
	if a.ends.IsZero() {
		return 0
	}
	return a.ends.Add(grace).UnixMilli()
}
