package explore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
)

// sqlWorld is one strategy with its clients on a PostgreSQL server, run through
// one schedule after the other in a schema of its own. The world within judges;
// its scheduler is not used.
type sqlWorld struct {
	*world
	pg     *pgstore.Store
	schema string
	base   context.Context //nolint:containedctx // of the exploration
	admin  *pgxpool.Pool   // its connection holds no lock while clients run
	pools  []*pgxpool.Pool // by instance; as many connections as it has clients
	// empty makes the schema as it was when its tables had been made, and lowest
	// finds negative numbers in it; empty where there are none.
	empty, lowest string
	furnished     bool
	// mayHurry is set where connections may set deadlock_timeout.
	mayHurry bool

	ctx     context.Context //nolint:containedctx // of the run
	stop    context.CancelFunc
	running sync.WaitGroup
	events  chan sqlStopped
	timer   *time.Timer
	callers []*sqlClient
	owners  sync.Map // *pgx.Conn -> *sqlClient that used it last
	// outside is set while the strategy runs for nobody: to open or to be looked at.
	outside atomic.Bool
	now     time.Time
	waited  int
	// fallen says after how many choices of the run what happened, and taken how many there were.
	fallen map[Property]int
	taken  int
	// blocked is set where a client has waited for a lock.
	blocked bool
}

// sqlSchemas tells the schemas of one process apart.
var sqlSchemas atomic.Int64

func newSQLWorld(ctx context.Context, sel strategies.Selection, cfg Config) (_ *sqlWorld, err error) {
	w := &sqlWorld{
		world: newWorld(sel, cfg, nil, start), pg: cfg.Postgres, base: ctx,
		schema: fmt.Sprintf("explore_%d_%d", os.Getpid(), sqlSchemas.Add(1)),
		events: make(chan sqlStopped), timer: time.NewTimer(time.Hour), fallen: map[Property]int{},
	}
	if err := w.pg.CreateSchema(ctx, w.schema); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.admin, err = w.pg.Pool(ctx, pgstore.PoolOptions{Schema: w.schema, Size: 1}); err != nil {
		return nil, err
	}
	if _, err := w.admin.Exec(ctx, "SET synchronous_commit TO off"); err != nil {
		return nil, fmt.Errorf("set the server up: %w", err)
	}
	_, err = w.admin.Exec(ctx, "SET deadlock_timeout TO DEFAULT")
	w.mayHurry = err == nil
	if err := w.connect(); err != nil {
		return nil, err
	}
	return w, w.furnish()
}

// connect opens the pools of all instances.
func (w *sqlWorld) connect() error {
	w.pools = w.pools[:0]
	for i := range w.cfg.Instances {
		members := (w.cfg.Clients - i + w.cfg.Instances - 1) / w.cfg.Instances
		p, err := w.pg.Pool(w.base, pgstore.PoolOptions{Schema: w.schema, Size: members, Tracer: sqlTracer{w}, DialWrap: wrapSQLWire})
		if err != nil {
			return err
		}
		w.pools = append(w.pools, p)
	}
	return nil
}

// furnish has the strategy make its tables, and finds out how to empty them.
func (w *sqlWorld) furnish() error {
	w.ctx, w.stop = context.WithCancel(w.base)
	defer w.stop()
	if err := w.openAll(); err != nil {
		return err
	}
	if j, ok := w.instances[0].strategy.(strategies.Jobber); ok && len(j.Jobs()) > 0 {
		return &UnfitError{fmt.Errorf("strategy %s cannot be explored: its jobs cannot be parked on PostgreSQL", w.sel.Name)}
	}
	tables, err := w.names("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1")
	if err != nil {
		return err
	}
	sequences, err := w.names("SELECT quote_literal(sequencename) FROM pg_sequences WHERE schemaname = current_schema() ORDER BY 1")
	if err != nil {
		return err
	}
	for _, t := range tables {
		var n int64
		if err := w.admin.QueryRow(w.base, "SELECT count(*) FROM "+t).Scan(&n); err != nil {
			return fmt.Errorf("look into table %s: %w", t, err)
		}
		if n > 0 {
			return &UnfitError{fmt.Errorf("strategy %s cannot be explored: its table %s is not empty at the start", w.sel.Name, t)}
		}
		w.empty += "DELETE FROM " + t + ";"
	}
	for _, s := range sequences {
		w.empty += "SELECT setval(" + s + ", 1, false);"
	}
	lowest, err := w.names(`SELECT format('SELECT %L, min(%I)::numeric FROM %I', table_name || '.' || column_name, column_name, table_name)
		FROM information_schema.columns JOIN pg_tables ON schemaname = table_schema AND tablename = table_name
		WHERE table_schema = current_schema() AND data_type IN ('smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision') ORDER BY 1`)
	w.lowest, w.furnished = strings.Join(lowest, " UNION ALL "), true
	return err
}

func (w *sqlWorld) names(query string) ([]string, error) {
	rows, err := w.admin.Query(w.base, query)
	if err != nil {
		return nil, fmt.Errorf("look at the tables: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look at the tables: %w", err)
	}
	return out, nil
}

// fresh makes connections as if they were new, but for statements that they have
// prepared. Commits need not reach the disk: nobody will look for them there.
const fresh = "RESET ALL; SELECT pg_advisory_unlock_all(); SET synchronous_commit TO off"

// begin makes a fresh run.
func (w *sqlWorld) begin() error {
	w.ctx, w.stop = context.WithCancel(w.base)
	if w.empty != "" {
		if _, err := w.admin.Exec(w.ctx, w.empty); err != nil {
			return fmt.Errorf("empty the tables: %w", err)
		}
	}
	w.used, w.steps, w.line = budget{}, nil, nil
	w.now, w.waited, w.taken = w.start, 0, 0
	w.truth.reset(w.start)
	w.owners.Clear()
	w.callers = w.callers[:0]
	clear(w.fallen)
	if err := w.openAll(); err != nil {
		return err
	}
	for i := range w.cfg.Clients {
		in := w.instances[i%len(w.instances)]
		c := &client{index: i, script: w.cfg.script(i), pending: -1, m: &member{in: in}}
		c.m.client = c
		in.members++
		w.callers = append(w.callers, &sqlClient{client: c, w: w, name: clientName(i), resume: make(chan struct{})})
	}
	w.fused = w.canFuse()
	return nil
}

// openAll opens the instances and sets the subject up.
func (w *sqlWorld) openAll() error {
	w.outside.Store(true)
	defer w.outside.Store(false)
	w.shared = &strategies.Shared{}
	w.instances = w.instances[:0]
	for i, pool := range w.pools {
		if err := freshen(w.ctx, pool); err != nil {
			return err
		}
		s, err := w.sel.Open(w.ctx, strategies.Env{
			Clock: sqlClock{w, w.skew(i)}, Rand: rand.New(rand.NewPCG(w.cfg.Seed, uint64(i))), //nolint:gosec // has to repeat
			Postgres: pool, Shared: w.shared, Instance: i, Instances: w.cfg.Instances, Options: w.sel.Options,
			Wake: func(string) {},
		})
		if err != nil {
			return fmt.Errorf("open %s: %w", w.sel, err)
		}
		w.instances = append(w.instances, &instance{index: i, strategy: s})
	}
	if !w.furnished {
		return nil
	}
	if p, ok := w.instances[0].strategy.(strategies.Provisioner); ok {
		grant := []strategies.Grant{{Subject: subject, Limit: w.cfg.Policy.Limit, Used: w.cfg.Used}}
		if err := p.Provision(w.ctx, &w.cfg.Policy, grant); err != nil {
			return fmt.Errorf("set the subject up: %w", err)
		}
	} else if w.cfg.Used > 0 {
		return &UnfitError{fmt.Errorf("strategy %s cannot begin with units used: leave them out", w.sel.Name)}
	}
	return nil
}

// freshen makes all connections of a pool as new, and opens those that are missing.
func freshen(ctx context.Context, pool *pgxpool.Pool) error {
	var held []*pgxpool.Conn
	defer func() {
		for _, c := range held {
			c.Release()
		}
	}()
	for range pool.Config().MaxConns {
		c, err := pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		held = append(held, c)
		if err := c.Conn().PgConn().Exec(ctx, fresh).Close(); err != nil {
			return fmt.Errorf("make a connection as new: %w", err)
		}
	}
	return nil
}

// end ends the run. One that is not over leaves its connections behind.
func (w *sqlWorld) end() error {
	over := !slices.ContainsFunc(w.callers, func(c *sqlClient) bool { return c.op.kind != sqlDone })
	over = over && !slices.ContainsFunc(w.pools, func(p *pgxpool.Pool) bool { return p.Stat().AcquiredConns() > 0 })
	w.stop()
	w.running.Wait()
	if over {
		return nil
	}
	var pids []int32
	for _, c := range w.callers {
		pids = append(pids, int32(c.seen.pid))
	}
	// Whoever waits for a lock does not notice that its connection is gone.
	ctx := context.WithoutCancel(w.base)
	if _, err := w.admin.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY($1)", pids); err != nil {
		return fmt.Errorf("end connections: %w", err)
	}
	if w.base.Err() != nil {
		return nil
	}
	w.abandon()
	return w.connect()
}

// abandon closes the pools. One with a connection that is never given back would
// wait for it for ever.
func (w *sqlWorld) abandon() {
	for _, p := range w.pools {
		if p.Stat().AcquiredConns() > 0 {
			go p.Close()
			continue
		}
		p.Close()
	}
}

// close removes all that was made on the server.
func (w *sqlWorld) close() error {
	w.timer.Stop()
	w.abandon()
	if w.admin != nil {
		w.admin.Close()
	}
	return w.pg.DropSchema(context.WithoutCancel(w.base), w.schema)
}
