package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// needSecond is the other of the two databases.
const needSecond strategies.Need = "postgres.2"

func init() {
	family.Register(files, family.GivingBack(strategies.Meta{
		Name:  "pg-two-phase",
		Needs: []strategies.Need{strategies.NeedPostgres, needSecond},
		Excluded: map[strategies.Mode]string{
			strategies.ModeSimulate: family.NotSimulated[strategies.ModeSimulate],
			strategies.ModeExplore: "what is prepared holds its locks without a connection, on two servers, " +
				"so nothing tells who waits for whom",
		},
		Guarantee: exact(),
		About: strategies.About{
			Record: []quota.Clause{quota.Exactly().From("ADR-005", "strong consistency, 100 % accurate")},
		},
		Open: openTwoPhase,
	}))
}

// twoPhase is one instance of pg-two-phase, which is also the coordinator of its
// transactions.
type twoPhase struct {
	clock   quota.Clock
	parties [2]party
	wake    func(job string)
	// last is the number of the last transaction.
	last atomic.Int64

	mu sync.Mutex
	// doubts are transactions that could not be settled yet.
	doubts []doubt
	// doubted counts all that were ever in doubt, and recovered those found on opening.
	doubted, recovered atomic.Int64
}

// party is one of the databases.
type party struct {
	windows
	tier quota.Tier
	// prefix begins the names of this instance's prepared transactions, which are
	// known to a whole server.
	prefix string
}

func (p *party) name(number int64) string { return fmt.Sprintf("%s%d", p.prefix, number) }

// openTwoPhase opens an instance on both databases, and settles the transactions that an earlier life of
// it has left behind.
func openTwoPhase(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	first := strategies.Postgres(env)
	second, ok := env.Clients[string(needSecond)].(*pgxpool.Pool)
	if first == nil || !ok {
		return nil, errors.New("pg-two-phase needs two PostgreSQL databases")
	}
	phase := &twoPhase{clock: env.Clock, wake: env.Wake}
	phase.parties = [2]party{
		{windows: windows{pool: first, clock: env.Clock}, tier: quota.TierPostgres},
		{windows: windows{pool: second, clock: env.Clock}, tier: quota.Tier(needSecond)},
	}
	for i := range phase.parties {
		party := &phase.parties[i]
		err := party.open(ctx, env.Instance, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", party.tier, err)
		}
	}
	err := phase.settleLeftOver(ctx)
	return phase, err
}

// open makes the table, and the prefix of this instance's names.
func (p *party) open(ctx context.Context, instance, number int) error {
	if err := family.Ensure(ctx, p.pool, tableWindows, sqlWindowSchema); err != nil {
		return err
	}
	var most int
	var own string
	err := p.pool.QueryRow(ctx, "SELECT current_setting('max_prepared_transactions')::int, current_schema()").Scan(&most,
		&own)
	switch {
	case err != nil:
		return fmt.Errorf("ask for its settings: %w", err)
	case most == 0:
		return errors.New("max_prepared_transactions is 0: set it to at least the number of callers, and start the " +
			"server again")
	}
	// The databases may lie on one server, and a server's names are its own.
	p.prefix = fmt.Sprintf("%s %d/%d ", own, instance, number)
	return nil
}

// Take implements strategies.Strategy: eight statements if the request is
// admitted, four if the first database has no room.
func (t *twoPhase) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	return t.parties[0].decide(ctx, req, t.charge)
}

func (t *twoPhase) charge(ctx context.Context, req quota.Request, window int64) (left int64, admitted bool, err error) {
	policy := req.Policy
	// As in pg-conditional, an UPDATE that finds no row says too little at first.
	for range 2 {
		var missing bool
		ok, err := t.transact(ctx, func(ctx context.Context, conn *pgxpool.Conn) (ok bool, err error) {
			used, ok, err := number(ctx, conn, sqlWindowCharge, req.Subject, policy, window, req.Units, policy.Limit)
			if err != nil || ok {
				left = policy.Limit - used
				return ok, family.Wrapf(err, "charge")
			}
			used, known, err := number(ctx, conn, sqlWindowUsed, req.Subject, policy, window)
			left = policy.Limit - used
			missing = !known || req.Units <= left
			return false, family.Wrapf(err, "read what is used")
		})
		if err != nil || ok || !missing {
			return left, ok, err
		}
		for _, party := range t.parties {
			if err := firstUse(ctx, party.pool, req, window); err != nil {
				return 0, false, fmt.Errorf("%s: %w", party.tier, err)
			}
		}
	}
	return left, false, nil
}

// Refund subtracts the reserved units in both databases. It remembers nothing: a
// reservation that is refunded twice gives its units back twice.
func (t *twoPhase) Refund(ctx context.Context, reservation quota.Reservation) error {
	req := reservation.Request
	if req.Policy == nil {
		return family.ErrNoReservation
	}
	_, err := t.transact(ctx, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		_, err := conn.Exec(ctx, sqlWindowRefund, string(req.Subject), req.Policy.Name, reservation.Window, req.Units)
		return true, err
	})
	return family.Wrapf(err, "refund")
}

// Used implements strategies.Viewer: both databases show what they hold.
func (t *twoPhase) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	var out []quota.Reading
	for i := range t.parties {
		readings, err := t.parties[i].Used(ctx, subject, policy)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.parties[i].tier, err)
		}
		readings[0].Tier = t.parties[i].tier
		out = append(out, readings...)
	}
	return out, nil
}

// Provision writes the rows of the window in force in both databases.
func (t *twoPhase) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	for i := range t.parties {
		if err := t.parties[i].Provision(ctx, policy, grants); err != nil {
			return fmt.Errorf("%s: %w", t.parties[i].tier, err)
		}
	}
	return nil
}

// Measures implements strategies.Meter.
func (t *twoPhase) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "in doubt", Unit: "transactions", Value: t.doubted.Load()},
		{Name: "recovered", Unit: "transactions", Value: t.recovered.Load()},
	}
}

// transact does work in both databases and commits it in both or in neither. ok is
// false if the work of one did not want to go on.
func (t *twoPhase) transact(ctx context.Context,
	work func(context.Context, *pgxpool.Conn) (ok bool, err error)) (ok bool, err error) {
	var conns [2]*pgxpool.Conn
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Release() // one within a transaction is closed, which rolls it back
			}
		}
	}()
	for i := range t.parties {
		conns[i], err = t.parties[i].pool.Acquire(ctx)
		if err != nil {
			return false, fmt.Errorf("%s: wait for a connection: %w", t.parties[i].tier, err)
		}
		_, err = conns[i].Exec(ctx, "begin")
		if err == nil {
			ok, err = work(ctx, conns[i])
		}
		if err != nil || !ok {
			rollBack(ctx, conns[:i+1])
			return false, err
		}
	}
	// A caller that gives up now does not leave things undecided.
	return t.commit(context.WithoutCancel(ctx), conns)
}

// rollBack ends transactions that were not prepared. If it fails, the pool
// closes the connection.
func rollBack(ctx context.Context, conns []*pgxpool.Conn) {
	for _, conn := range conns {
		_, _ = conn.Exec(ctx, "rollback")
	}
}

// commit prepares both transactions, and then commits both.
func (t *twoPhase) commit(ctx context.Context, conns [2]*pgxpool.Conn) (bool, error) {
	d := doubt{number: t.last.Add(1)}
	for i := range t.parties {
		if err := prepare(ctx, conns[i].Conn(), t.parties[i].name(d.number)); err != nil {
			rollBack(ctx, conns[i+1:])
			if conns[i].Conn().IsClosed() { // without an answer
				d.asked = i + 1
				d.pid = conns[i].Conn().PgConn().PID()
			}
			if d.asked > 0 {
				t.settle(ctx, d)
			}
			return false, fmt.Errorf("%s: prepare: %w", t.parties[i].tier, err)
		}
		d.asked = i + 1
	}
	d.decided = true
	for i := range t.parties {
		_, err := conns[i].Exec(ctx, "COMMIT PREPARED "+literal(t.parties[i].name(d.number)))
		if err != nil && !t.settle(ctx, d) {
			return false, fmt.Errorf("%s: commit: %w", t.parties[i].tier, err)
		}
		if err != nil {
			break // both are committed
		}
	}
	return true, nil
}

// prepare ends the connection's transaction in such a way that it can be committed.
// If the transaction has failed, PostgreSQL rolls it back without an error.
func prepare(ctx context.Context, conn *pgx.Conn, name string) error {
	tag, err := conn.Exec(ctx, "PREPARE TRANSACTION "+literal(name))
	if err == nil && tag.String() != "PREPARE TRANSACTION" {
		err = fmt.Errorf("PostgreSQL answered %s", tag)
	}
	return err
}
