package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

// DefaultImage is the container image that is used where options name none.
const DefaultImage = "postgres:17.11-alpine"

const urls = "postgres://"

var driver = stores.Driver{
	Name: "postgres", Title: "PostgreSQL",
	Choices: []stores.Choice{
		{Word: "auto", Doc: "a process if PostgreSQL is installed, else a container if its image is here, else embedded; the default"},
		{Word: "process", Doc: "PostgreSQL of this machine, started as a child and removed afterwards"},
		{Word: "container", Doc: "the official image in Docker or Podman, removed afterwards; see --postgres-image"},
		{Word: "embedded", Doc: "no server: tiered strategies use an in-process model, SQL strategies are skipped"},
		{Word: "postgres://", Doc: "a server of yours by URL; only a schema of the run's own is touched"},
	},
	URLs: urls, Default: "auto", Image: DefaultImage, PasswordEnv: "PGPASSWORD",
	Survey: survey,
}

func init() {
	d := driver
	d.Open = func(ctx context.Context, spec string, o stores.Options) (stores.Store, error) {
		s, err := Open(ctx, spec, o)
		if err != nil {
			return nil, err // and no Store that is not nil
		}
		return s, nil
	}
	stores.Register(d)
}

// Store is one open PostgreSQL server.
type Store struct {
	base  *pgxpool.Config // to reach it; copied for each pool
	info  stores.Info
	own   server.Server // nil where the server was not started here
	admin *pgxpool.Pool
	// lent is set where admin is the caller's, who closes it.
	lent bool
	// room is how many connections the server allows ordinary users.
	room int

	closing sync.Once
	closed  error
}

// PoolOptions choose a pool of connections.
type PoolOptions struct {
	// Schema is the search path of every connection; empty leaves the server's.
	Schema string
	// Size is how many connections there may be; 0 means pgx' default.
	Size int
	// Meter counts the pool's traffic; nil counts nothing.
	Meter *stores.Meter
	// DialWrap is put between the pool (and its meter) and every connection,
	// e.g. to inject faults. It sees the bytes on the wire, encrypted where the
	// connection is.
	DialWrap func(net.Conn) net.Conn
	// Timeout of a dial; 0 means the client's default. Statements have no limit
	// but their context's.
	Timeout time.Duration
	// Tracer is called around statements; nil for none.
	Tracer pgx.QueryTracer
}

// Open opens the PostgreSQL that spec names: "auto", "process", "container",
// "embedded" or a URL. auto is process where the programs are found on this
// machine, else container where the image is here already. Containers need an
// import of package stores/container. Elsewhere, and with embedded, there is no
// server, which is a [*stores.AbsentError]: strategies that can do without use
// their in-process model.
//
// Errors are of one line, say how to go on, and hold no password.
func Open(ctx context.Context, spec string, o stores.Options) (*Store, error) {
	server.RemoveLeftovers(ctx, o.Dir)
	switch {
	case spec == "auto":
		return openAuto(ctx, o)
	case spec == "process":
		bin, err := find()
		if err != nil {
			return nil, err
		}
		return openProcess(ctx, bin, o)
	case spec == "container":
		e, err := server.FindEngine(ctx)
		if err != nil {
			return nil, err
		}
		return openContainer(ctx, e, o)
	case spec == "embedded" || spec == "none":
		return nil, absent("asked for")
	case isURL(spec):
		return openURL(ctx, spec)
	}
	return nil, driver.Refuse(spec)
}

func openAuto(ctx context.Context, o stores.Options) (*Store, error) {
	bin, err := find()
	if err != nil {
		return openWithoutProcess(ctx, o, "no PostgreSQL found on this machine")
	}
	p, err := openProcess(ctx, bin, o)
	if err != nil && ctx.Err() == nil {
		return openWithoutProcess(ctx, o, server.OneLine(err.Error()))
	}
	return p, err
}

func openWithoutProcess(ctx context.Context, o stores.Options, why string) (*Store, error) {
	if e, err := server.FindEngine(ctx); err == nil && e.HasImage(ctx, cmp.Or(o.Image, DefaultImage)) {
		p, err := openContainer(ctx, e, o)
		if err == nil || ctx.Err() != nil {
			return p, err
		}
		why += "; " + server.OneLine(err.Error())
	}
	return nil, absent(why)
}

func absent(why string) error {
	return &stores.AbsentError{Reason: stores.Info{
		Kind:       stores.KindModel,
		Detail:     "no server (" + why + "): an in-process model stands in where a strategy can use one",
		Durability: "none: memory of this process",
	}}
}

// FromPool makes a store of a pool that the caller has. The caller closes the
// pool, after the store.
//
// Connect opens pools of their own, with a copy of this one's configuration: its
// server, login, dialer and hooks. They are metered.
func FromPool(ctx context.Context, pool *pgxpool.Pool) (*Store, error) {
	p := &Store{base: pool.Config(), admin: pool, lent: true, info: stores.Info{
		Kind: stores.KindClient, Detail: "a pool that was there already; its server may serve others too",
	}}
	p.info.Addr = address(p.base)
	if err := p.describe(ctx); err != nil {
		return nil, fmt.Errorf("use a PostgreSQL pool: %w", err)
	}
	return p, nil
}

// Driver is "postgres".
func (p *Store) Driver() string { return driver.Name }

// Info describes the server.
func (p *Store) Info() stores.Info { return p.info }

// Owned reports whether the server was started here and nobody else uses it.
func (p *Store) Owned() bool { return p.own != nil }

// PID is the server's first process where it is a child of ours, and otherwise
// 0, also for a container.
func (p *Store) PID() int {
	if p.own == nil {
		return 0
	}
	return p.own.PID()
}

// CreateSchema makes a schema, which must not exist.
func (p *Store) CreateSchema(ctx context.Context, name string) error {
	return p.ddl(ctx, create, name, "CREATE SCHEMA "+pgx.Identifier{name}.Sanitize())
}

// DropSchema removes a schema and all that is in it. It may not exist. Where the
// connection is lost it is tried again, once.
func (p *Store) DropSchema(ctx context.Context, name string) error {
	return p.ddl(ctx, drop, name, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE")
}

func (p *Store) ddl(ctx context.Context, verb, name, sql string) error {
	_, err := p.admin.Exec(ctx, sql)
	if verb == drop && lost(err) && ctx.Err() == nil {
		// The connection was cut while it lay idle. Others may have been, too.
		p.admin.Reset()
		_, err = p.admin.Exec(ctx, sql)
	}
	if err != nil {
		return fmt.Errorf("%s schema %s: %w", verb, name, err)
	}
	return nil
}

// The two things that are done to schemas.
const (
	create = "create"
	drop   = "drop"
)

// lost reports whether an error is of the connection and not of the statement.
func lost(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") // operator intervention, connection exception
	}
	return err != nil
}

// Pool opens a pool of connections. The caller closes it. A size that the server
// has no room for is an error here, before it becomes one in the middle of a run.
func (p *Store) Pool(ctx context.Context, o PoolOptions) (*pgxpool.Pool, error) {
	if o.Size > p.room {
		return nil, fmt.Errorf("a pool of %d connections does not fit into this PostgreSQL, which allows %d: use a smaller pool or raise its max_connections", o.Size, p.room)
	}
	pool, err := p.pool(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open a pool of PostgreSQL connections: %w", err)
	}
	return pool, nil
}

func (p *Store) pool(ctx context.Context, o PoolOptions) (*pgxpool.Pool, error) {
	cfg := p.base.Copy()
	cfg.MinConns, cfg.MinIdleConns = 0, 0
	if o.Tracer != nil {
		cfg.ConnConfig.Tracer = o.Tracer
	}
	if o.Schema != "" {
		// In the start-up message: it costs no statement.
		cfg.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{o.Schema}.Sanitize()
	}
	if o.Timeout > 0 {
		cfg.ConnConfig.ConnectTimeout = o.Timeout
	}
	if o.DialWrap != nil {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return o.DialWrap(c), nil
		}
	}
	if o.Meter != nil {
		cfg.ConnConfig.AfterNetConnect = metered(o.Meter, cfg.ConnConfig.AfterNetConnect)
	}
	if o.Size > 0 {
		cfg.MaxConns = int32(o.Size)
	}
	// No dial and no probe in the middle of a run: they would count as the
	// strategy's.
	cfg.MaxConnLifetime, cfg.MaxConnIdleTime = 24*time.Hour, 24*time.Hour
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return pgxpool.NewWithConfig(ctx, cfg)
}

// Close ends the harness' own connections and, where the server was started
// here, the server and its directory. Pools should be closed before. Only the
// first call does anything; all return its error.
func (p *Store) Close() error {
	p.closing.Do(func() {
		if !p.lent {
			p.admin.Close()
		}
		if p.own != nil {
			if err := p.own.Close(); err != nil {
				p.closed = fmt.Errorf("close postgres: %w", err)
			}
		}
	})
	return p.closed
}

// connect opens the admin pool and asks the server who it is. base is set.
func (p *Store) connect(ctx context.Context) error {
	p.info.Addr = address(p.base)
	var err error
	if p.admin, err = p.pool(ctx, PoolOptions{Size: 2}); err != nil {
		return err
	}
	if err := p.describe(ctx); err != nil {
		p.admin.Close()
		return err
	}
	return nil
}

// address is host:port, or the path of a socket.
func address(c *pgxpool.Config) string {
	if to := c.ConnConfig; strings.HasPrefix(to.Host, "/") {
		return fmt.Sprintf("%s/.s.PGSQL.%d", to.Host, to.Port)
	}
	return net.JoinHostPort(c.ConnConfig.Host, strconv.Itoa(int(c.ConnConfig.Port)))
}

// describe completes Info from what the server says.
func (p *Store) describe(ctx context.Context) error {
	var version int
	var shown, fsync, commit, fullPage string
	var most, kept int
	err := p.admin.QueryRow(ctx, `
		SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		       current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'),
		       current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int`).
		Scan(&version, &shown, &fsync, &commit, &fullPage, &most, &kept)
	if err != nil {
		return err
	}
	if version < oldest*10000 {
		return fmt.Errorf("%w at %s: it is version %s, and %d is the oldest that works", errOld, p.info.Addr, shown, oldest)
	}
	p.info.Version = shown
	p.info.Durability = "fsync " + fsync + ", synchronous_commit " + commit
	if fullPage != "on" {
		p.info.Durability += ", full_page_writes " + fullPage
	}
	// The harness itself keeps two open.
	p.room = max(1, most-kept-2)
	return nil
}

// oldest is the oldest version that its authors still supported when
// this was written and that has ON CONFLICT in all forms used.
const oldest = 12

var errOld = errors.New("postgresql is too old")

// netHook is called with each new connection, encrypted where it is to be.
type netHook = func(context.Context, *pgconn.Config, net.Conn) (net.Conn, error)

func metered(m *stores.Meter, inner netHook) netHook {
	return func(ctx context.Context, cfg *pgconn.Config, c net.Conn) (net.Conn, error) {
		if inner != nil {
			var err error
			if c, err = inner(ctx, cfg, c); err != nil {
				return nil, err
			}
		}
		return m.Conn(c, &pgParser{}), nil
	}
}
