// Package postgres runs schedules on a PostgreSQL server, for strategies that are
// SQL. A step is one statement, BEGIN and COMMIT among them; a client whose
// statement waits for a lock takes no step until it is let go on. What a server
// holds cannot be hashed, so the engine returns no state: every schedule is run to
// its end.
package postgres

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/proxy/pgwire"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// Engine is one strategy with its clients, in a schema of its own.
type Engine struct {
	engine.World
	sel    strategies.Selection
	server stores.Store
	scope  stores.Scope
	base   context.Context // of the exploration
	conn   stores.Conn
	admin  *pgxpool.Pool   // of conn; it holds no lock while clients run
	pools  []*pgxpool.Pool // by instance; as many connections as it has clients
	// empty makes the schema as it was when its tables had been made, and lowest
	// finds negative numbers in it; empty if there are none.
	empty, lowest string
	lastHeld      []engine.Holding // that were seen last
	// tables is set once the strategy has made them.
	tables bool
	// mayHurry is set if connections may set deadlock_timeout.
	mayHurry bool
	fused    bool

	ctx       context.Context // of the run
	stop      context.CancelFunc
	running   sync.WaitGroup
	events    chan stopped
	timer     *time.Timer
	shared    *strategies.Shared
	instances []*instance
	callers   []*client
	snapshot  engine.Snapshot
	panicked  *engine.PanicError
	// begun is set while there is a run, and hung once a client of one did not stop.
	begun, hung bool
	owners      sync.Map // *pgx.Conn -> *client that used it last
	// outside is set while the strategy runs for no client: to open or to be looked
	// at.
	outside atomic.Bool
	now     time.Time
	waited  int
	taken   int // choices of the run
}

// instance is one application instance.
type instance struct {
	index    int
	strategy strategies.Strategy
}

// schemas tells the schemas of one process apart, and process those of several on one
// server.
var (
	schemas atomic.Int64
	process = sync.OnceValue(func() string { return strings.ToLower(crand.Text()[:12]) })
)

// Open makes an engine on a server, which stays the caller's. It ends what it does
// when ctx is done, and can then still run again what was found.
func Open(ctx context.Context, sel strategies.Selection, setup engine.Setup,
	server stores.Store) (_ *Engine, err error) {
	w := &Engine{
		sel: sel, server: server, base: ctx,
		scope:  stores.Scope(fmt.Sprintf("explore_%s_%d", process(), schemas.Add(1))),
		events: make(chan stopped), timer: time.NewTimer(time.Hour),
	}
	version, _, _ := strings.Cut(server.Info().Version, " ") // not who packaged it
	w.Traits = engine.Traits{Store: "PostgreSQL " + version}
	w.Run.Aborts = map[results.Property]int{}
	w.Connect(w, &setup)
	w.Witness = witness.New(witness.Config{
		NeedsStore: true, Caller: w.belongs, Real: clock.Wall{}.Now(), Virtual: engine.Start,
	})
	if _, err := server.Prepare(ctx, w.scope); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	w.conn, err = server.Connect(ctx, w.scope, stores.ConnOptions{Pool: 1})
	if err != nil {
		return nil, err
	}
	admin, ok := w.conn.Client().(*pgxpool.Pool)
	if !ok {
		return nil, &engine.UnfitError{Err: fmt.Errorf("strategy %s needs PostgreSQL, which a store of the driver %s is not",
			sel.Name, server.Driver())}
	}
	w.admin = admin
	if _, err := w.admin.Exec(ctx, "SET synchronous_commit TO off"); err != nil {
		return nil, fmt.Errorf("set the server up: %w", err)
	}
	_, err = w.admin.Exec(ctx, "SET deadlock_timeout TO DEFAULT")
	w.mayHurry = err == nil
	if err := w.connect(); err != nil {
		return nil, err
	}
	return w, w.makeTables()
}

// connect opens the pools of all instances.
func (w *Engine) connect() error {
	w.pools = w.pools[:0]
	for i := range w.Setup.Instances {
		cfg := w.admin.Config()
		cfg.MaxConns = int32(w.Setup.Members(i))
		cfg.ConnConfig.Tracer = tracer{w}
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return pgwire.Wrap(conn), nil
		}
		cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
			if wire, ok := conn.PgConn().Conn().(*pgwire.Conn); ok {
				wire.Forget()
			}
			return nil
		}
		pool, err := pgxpool.NewWithConfig(w.base, cfg)
		if err != nil {
			return fmt.Errorf("open a pool of PostgreSQL connections: %w", err)
		}
		w.pools = append(w.pools, pool)
	}
	return nil
}

// belongs reports whether a statement's context is that of a client, or whether
// none is expected to be.
func (w *Engine) belongs(ctx context.Context) bool {
	return w.outside.Load() || ctx.Value(clientKey{}) != nil
}

// witnessed shows a statement of the strategy's to the witness. Rollbacks come
// under contexts of the library's own.
func (w *Engine) witnessed(ctx context.Context, sql string, args []any) {
	if !strings.EqualFold(strings.TrimSpace(sql), "rollback") {
		w.Witness.Statement(ctx, sql, args)
	}
}

// fresh makes connections as if they were new, except for statements that they
// have prepared. Commits need not reach the disk, if nothing looks for them.
const fresh = "RESET ALL; SELECT pg_advisory_unlock_all(); SET synchronous_commit TO off"

// Begin implements [engine.Engine].
func (w *Engine) Begin() error {
	if w.base.Err() != nil { // what was found is still run again
		w.base = context.WithoutCancel(w.base)
		w.abandon()
		if err := w.connect(); err != nil {
			return err
		}
	}
	w.ctx, w.stop = context.WithCancel(w.base)
	w.begun = true
	if w.empty != "" {
		if _, err := w.admin.Exec(w.ctx, w.empty); err != nil {
			return fmt.Errorf("empty the tables: %w", err)
		}
	}
	w.Fresh(engine.Start)
	w.now = engine.Start
	w.waited = 0
	w.taken = 0
	w.lastHeld = nil
	w.panicked = nil
	w.owners.Clear()
	w.callers = w.callers[:0]
	if err := w.openAll(); err != nil {
		return err
	}
	for i := range w.Setup.Clients {
		instance := w.instances[i%len(w.instances)]
		w.Run.Timeline.Column(engine.ClientColumn(i))
		c := &client{engine: w, instance: instance, resume: make(chan struct{}), Client: w.Client(i)}
		c.Strategy = func() strategies.Strategy { return instance.strategy }
		c.Over = func() bool { return w.ctx.Err() != nil }
		w.callers = append(w.callers, c)
	}
	w.fused = w.shared.Len() == 0 && w.Setup.Instances == w.Setup.Clients
	return nil
}

// once calls a strategy from outside of all clients, and gives it up if it does not
// return.
func once[T any](w *Engine, where string, f func(context.Context) (T, error)) (T, error) {
	v, err := guard.Within(w.ctx, guard.Once(w.Setup.Patience), guard.Grace(w.Setup.Patience), where, f)
	if _, hung := errors.AsType[*guard.HungError](err); hung {
		w.hung = true
	}
	return v, err
}

// openAll opens the instances and sets the subject up.
func (w *Engine) openAll() error {
	w.outside.Store(true)
	defer w.outside.Store(false)
	w.shared = &strategies.Shared{}
	w.instances = w.instances[:0]
	for i, pool := range w.pools {
		if err := freshen(w.ctx, pool); err != nil {
			return err
		}
		env := strategies.Env{
			Clock: virtual{w, w.Setup.SkewOf(i)}, TrueClock: virtual{w, 0},
			Rand:    seed.Rand(w.Setup.Seed, seed.Instance, 0, uint64(i)),
			Clients: map[string]any{string(strategies.NeedPostgres): pool}, Shared: w.shared, Instance: i,
			Instances: w.Setup.Instances, Options: w.sel.Options,
			Wake: func(string) {},
		}
		strategy, err := once(w, "being opened", func(ctx context.Context) (strategies.Strategy, error) {
			return w.sel.Open(ctx, env)
		})
		if err != nil {
			return fmt.Errorf("open %s: %w", w.sel, err)
		}
		w.instances = append(w.instances, &instance{index: i, strategy: strategy})
	}
	if !w.tables {
		return nil
	}
	_, err := once(w, "setting subjects up", func(ctx context.Context) (any, error) {
		return nil, w.Setup.Provision(ctx, w.instances[0].strategy, w.sel.Name)
	})
	return err
}

// freshen makes all connections of a pool as new, and opens those that are missing.
func freshen(ctx context.Context, pool *pgxpool.Pool) error {
	var held []*pgxpool.Conn
	defer func() {
		for _, conn := range held {
			conn.Release()
		}
	}()
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		held = append(held, conn)
		if err := conn.Conn().PgConn().Exec(ctx, fresh).Close(); err != nil {
			return fmt.Errorf("make a connection as new: %w", err)
		}
	}
	return nil
}

// End implements [engine.Engine]. A run that is not over leaves its connections
// behind.
func (w *Engine) End() error {
	over, err := w.release()
	if err != nil || over || w.base.Err() != nil {
		return err
	}
	w.abandon()
	return w.connect()
}

// release ends the run's clients and the sessions of those that are in the middle of
// something. over is false if there are any.
func (w *Engine) release() (over bool, err error) {
	w.begun = false
	over = !slices.ContainsFunc(w.callers, func(c *client) bool { return c.halt.kind != opDone })
	over = over && !slices.ContainsFunc(w.pools, func(pool *pgxpool.Pool) bool { return pool.Stat().AcquiredConns() > 0 })
	w.stop()
	err = w.ended()
	if w.hung {
		err = nil // which was told already
	}
	if over {
		return over, err
	}
	var pids []int32
	for _, client := range w.callers {
		pids = append(pids, int32(client.seen.pid))
	}
	// A session that waits for a lock does not notice that its connection is gone.
	ctx := context.WithoutCancel(w.base)
	if _, derr := w.admin.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY($1)",
		pids); derr != nil {
		err = errors.Join(err, fmt.Errorf("end connections: %w", derr))
	}
	return over, err
}

// ended waits until all clients have ended, which are told to, and names one that does
// not.
func (w *Engine) ended() error {
	limit := guard.Grace(w.Setup.Patience)
	if w.base.Err() != nil {
		limit = min(limit, time.Second)
	}
	_, err := guard.Within(context.Background(), limit, 0, "a client that is to end", func(context.Context) (any, error) {
		w.running.Wait()
		return nil, nil
	})
	return err
}

// abandon closes the pools. One with a connection that is never given back would
// wait for it forever.
func (w *Engine) abandon() {
	for _, pool := range w.pools {
		if pool.Stat().AcquiredConns() > 0 {
			go pool.Close()
			continue
		}
		pool.Close()
	}
}

// Close implements [engine.Engine]: it removes all that was made on the server.
func (w *Engine) Close() error {
	w.timer.Stop()
	var err error
	if w.begun {
		_, err = w.release()
	}
	w.abandon()
	if w.conn != nil {
		err = errors.Join(err, w.conn.Close())
	}
	return errors.Join(err, w.server.Wipe(context.WithoutCancel(w.base), w.scope))
}
