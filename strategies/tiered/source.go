package tiered

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	//go:embed sql/schema.sql
	sqlSchema string
	//go:embed sql/check.sql
	sqlCheck string
	//go:embed sql/check_literal.sql
	sqlCheckLiteral string
	//go:embed sql/used.sql
	sqlUsed string
	//go:embed sql/limit.sql
	sqlLimit string
	//go:embed sql/counts.sql
	sqlCounts string
	//go:embed sql/charge.sql
	sqlCharge string
	//go:embed sql/write_back.sql
	sqlWriteBack string
	//go:embed sql/reset.sql
	sqlReset string
	//go:embed sql/provision.sql
	sqlProvision string
	//go:embed sql/set_limit.sql
	sqlSetLimit string
)

// errNoAgent is a check of an agent that has no row. It is no outage, and so
// nothing to fall back from.
var errNoAgent = errors.New("agent has no row in the quotas table: provision it first")

// source is the database of record. Each method but charge and writeBack is one
// statement. Reads of an agent without a row fail with errNoAgent. A kind of use
// that is misnamed fails with [strategies.ErrPrescribed] if its column of
// counts is needed.
type source interface {
	reader
	// charge adds units to the count in a transaction, and returns the new count.
	charge(ctx context.Context, u *use, subject quota.Subject, units int64) (int64, error)
	// writeBack overwrites counts of one kind of use, one statement per item, in
	// the items' order per agent. It returns the items that still have to be written.
	writeBack(ctx context.Context, u *use, items []writeBack) (left []writeBack, err error)
	// counts returns what every agent has used, and its limit, in the order of agents.
	counts(ctx context.Context, u *use) ([]strategies.Grant, error)
	// reset sets every agent's count to zero and returns all agents in order.
	reset(ctx context.Context, u *use) ([]quota.Subject, error)
	// provision makes rows and replaces what this kind of use has in existing ones.
	provision(ctx context.Context, u *use, grants []strategies.Grant) error
	// setLimit gives rows that exist another limit.
	setLimit(ctx context.Context, u *use, agents []quota.Subject, limit int64) error
}

// reader answers the three questions of a miss. It is the source, or a replica that
// lags behind it.
type reader interface {
	tier() quota.Tier
	// check is the record's SQL function: whether used < limit.
	check(ctx context.Context, u *use, subject quota.Subject) (bool, error)
	used(ctx context.Context, u *use, subject quota.Subject) (int64, error)
	limit(ctx context.Context, u *use, subject quota.Subject) (int64, error)
	// follow waits until everything that was written so far can be read.
	follow(ctx context.Context) error
}

// openReplica opens what misses read with source=replica: the store
// [strategies.NeedReplica] next to PostgreSQL, a model next to its model.
func openReplica(ctx context.Context, env strategies.Env, of source) (reader, error) {
	if source, ok := of.(*modelSource); ok {
		return source.replica(env), nil
	}
	pool, ok := env.Clients[string(strategies.NeedReplica)].(*pgxpool.Pool)
	if !ok {
		return nil, fmt.Errorf("there is no store %s", strategies.NeedReplica)
	}
	primary := of.(*postgresSource)
	replica := &postgresReplica{postgresSource: &postgresSource{pool: pool, sql: primary.sql}, primary: primary.pool,
		clock: env.Clock}
	return replica, replica.follow(ctx)
}

// undefinedColumn is PostgreSQL's code for a column that is not there.
const undefinedColumn = "42703"

// statements are those of one kind of use under one of its names.
type statements struct{ check, used, limit, counts, charge, writeBack, reset, provision, setLimit string }

type postgresSource struct {
	pool *pgxpool.Pool
	sql  map[*use]*statements
}

func openPostgres(ctx context.Context, pool *pgxpool.Pool) (source, error) {
	if err := family.Ensure(ctx, pool, "quotas", sqlSchema); err != nil {
		return nil, err
	}
	p := &postgresSource{pool: pool, sql: map[*use]*statements{}}
	p.prepare(&schemaUses, sqlCheck)
	p.prepare(&literalUses, sqlCheckLiteral)
	return p, nil
}

func (p *postgresSource) prepare(uses *[useCount]use, check string) {
	for i := range uses {
		use := &uses[i]
		p.sql[use] = &statements{
			check: check, used: use.sql(sqlUsed), limit: use.sql(sqlLimit), counts: use.sql(sqlCounts),
			charge:    use.sql(sqlCharge),
			writeBack: use.sql(sqlWriteBack), reset: use.sql(sqlReset), provision: use.sql(sqlProvision),
			setLimit: use.sql(sqlSetLimit),
		}
	}
}

func (p *postgresSource) tier() quota.Tier { return quota.TierPostgres }

func (p *postgresSource) follow(context.Context) error { return nil }

// explain marks an error as the record's own if its names made it.
func (u *use) explain(err error) error {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && u.misnamed() && answer.Code == undefinedColumn {
		return fmt.Errorf("%w, %w", err, strategies.ErrPrescribed)
	}
	return err
}

func (p *postgresSource) check(ctx context.Context, u *use, subject quota.Subject) (bool, error) {
	var hasRoom *bool
	if err := p.pool.QueryRow(ctx, p.sql[u].check, string(subject), u.name).Scan(&hasRoom); err != nil {
		return false, u.explain(err)
	}
	if hasRoom == nil {
		return false, errNoAgent
	}
	return *hasRoom, nil
}

func (p *postgresSource) used(ctx context.Context, u *use, subject quota.Subject) (int64, error) {
	return number(p.pool.QueryRow(ctx, p.sql[u].used, string(subject)), u)
}

func (p *postgresSource) limit(ctx context.Context, u *use, subject quota.Subject) (int64, error) {
	return number(p.pool.QueryRow(ctx, p.sql[u].limit, string(subject)), u)
}

// number reads the only column of an agent's row.
func number(row pgx.Row, u *use) (n int64, err error) {
	err = row.Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, errNoAgent
	}
	return n, u.explain(err)
}

// charge opens and ends a transaction around its statement, although the
// statement alone would do: the record pays these round trips.
func (p *postgresSource) charge(ctx context.Context, u *use, subject quota.Subject, units int64) (n int64, err error) {
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		n, err = number(tx.QueryRow(ctx, p.sql[u].charge, string(subject), units), u)
		return err
	})
	return n, err
}

// writeBack sends all statements at once and runs them in one transaction, so
// all items are left when one fails.
func (p *postgresSource) writeBack(ctx context.Context, u *use, items []writeBack) ([]writeBack, error) {
	// Every instance locks rows in the order of agents, or two of them could wait
	// for each other. The order of one agent's items, which decides, is kept.
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b writeBack) int {
		return strings.Compare(string(a.subject), string(b.subject))
	})
	var batch pgx.Batch
	for _, back := range sorted {
		batch.Queue(p.sql[u].writeBack, string(back.subject), back.count)
	}
	if err := p.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return items, u.explain(err)
	}
	return nil, nil
}

func (p *postgresSource) counts(ctx context.Context, u *use) ([]strategies.Grant, error) {
	rows, _ := p.pool.Query(ctx, p.sql[u].counts) // CollectRows returns its error
	return pgx.CollectRows(rows, pgx.RowToStructByPos[strategies.Grant])
}

func (p *postgresSource) reset(ctx context.Context, u *use) ([]quota.Subject, error) {
	rows, _ := p.pool.Query(ctx, p.sql[u].reset) // CollectRows returns its error
	agents, err := pgx.CollectRows(rows, pgx.RowTo[quota.Subject])
	// The order in which rows come back is PostgreSQL's to choose.
	slices.Sort(agents)
	return agents, err
}

func (p *postgresSource) provision(ctx context.Context, u *use, grants []strategies.Grant) error {
	agents, limits, used := family.Columns(grants)
	_, err := p.pool.Exec(ctx, p.sql[u].provision, agents, used, limits)
	return err
}

func (p *postgresSource) setLimit(ctx context.Context, u *use, agents []quota.Subject, limit int64) error {
	_, err := p.pool.Exec(ctx, p.sql[u].setLimit, family.Names(agents), limit)
	return err
}

// postgresReplica reads a streaming replica.
type postgresReplica struct {
	*postgresSource
	primary *pgxpool.Pool
	clock   quota.Clock
}

// follow waits until the replica has replayed what the primary had written when it
// was asked. It is for opening and setting up: no check waits for it.
func (p *postgresReplica) follow(ctx context.Context) error {
	var written string
	if err := p.primary.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&written); err != nil {
		return fmt.Errorf("ask the primary how far it has written: %w", err)
	}
	for {
		var there *bool
		if err := p.pool.QueryRow(ctx, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn",
			written).Scan(&there); err != nil {
			return fmt.Errorf("ask the replica how far it has read: %w", err)
		}
		switch {
		case there == nil:
			return fmt.Errorf("the store that misses read replays no other's log: it is no replica")
		case *there:
			return nil
		}
		if err := p.clock.Sleep(ctx, followEvery); err != nil {
			return fmt.Errorf("wait for the replica: %w", err)
		}
	}
}
