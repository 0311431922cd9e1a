package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const postgresURLs = "postgres://"

// Postgres is one open PostgreSQL server, or the absence of one: see
// [Postgres.Available].
type Postgres struct {
	base  *pgxpool.Config // to reach it; copied for each pool. nil without a server
	info  Info
	own   ownServer // nil where somebody else runs it
	admin *pgxpool.Pool
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
	Meter *Meter
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

// OpenPostgres opens the PostgreSQL that spec names: "auto" (or empty),
// "process", "container", "embedded" or a URL. auto is process where the programs
// are found on this machine, else container where the image is here already.
// Elsewhere, and with embedded, there is no server, and strategies that can do
// without use their in-process model.
//
// Errors are of one line, say how to go on, and hold no password.
func OpenPostgres(ctx context.Context, spec string, o Options) (*Postgres, error) {
	removeLeftovers(ctx, o.dir())
	switch {
	case spec == "" || spec == "auto":
		return openPostgresAuto(ctx, o)
	case spec == "process":
		bin, err := findPostgres()
		if err != nil {
			return nil, err
		}
		return openPostgresProcess(ctx, bin, o)
	case spec == "container":
		e, err := findEngine(ctx)
		if err != nil {
			return nil, err
		}
		return openPostgresContainer(ctx, e, o)
	case spec == "embedded" || spec == "none":
		return noPostgres("asked for"), nil
	case isPostgresURL(spec):
		return openPostgresURL(ctx, spec)
	}
	return nil, badSpec("postgres", spec, postgresURLs)
}

func openPostgresAuto(ctx context.Context, o Options) (*Postgres, error) {
	bin, err := findPostgres()
	if err != nil {
		return openPostgresWithoutProcess(ctx, o, "no PostgreSQL found on this machine")
	}
	p, err := openPostgresProcess(ctx, bin, o)
	if err != nil && ctx.Err() == nil {
		return openPostgresWithoutProcess(ctx, o, oneLine(err.Error()))
	}
	return p, err
}

func openPostgresWithoutProcess(ctx context.Context, o Options, why string) (*Postgres, error) {
	if e, err := findEngine(ctx); err == nil && e.hasImage(ctx, cmp.Or(o.Image, DefaultPostgresImage)) {
		p, err := openPostgresContainer(ctx, e, o)
		if err == nil || ctx.Err() != nil {
			return p, err
		}
		why += "; " + oneLine(err.Error())
	}
	return noPostgres(why), nil
}

func noPostgres(why string) *Postgres {
	return &Postgres{info: Info{
		Kind:       KindModel,
		Detail:     "no server (" + why + "): an in-process model stands in where a strategy can use one",
		Durability: "none: memory of this process",
	}}
}

// Available reports whether there is a server. Where there is none, whatever
// needs one returns [ErrNoServer].
func (p *Postgres) Available() bool { return p.base != nil }

// Info describes the server.
func (p *Postgres) Info() Info { return p.info }

// Owned reports whether the server was started here and nobody else uses it.
func (p *Postgres) Owned() bool { return p.own != nil }

// PID is the server's first process where it is a child of ours, and otherwise
// 0, also for a container.
func (p *Postgres) PID() int {
	if p.own == nil {
		return 0
	}
	return p.own.pid()
}

// CreateSchema makes a schema, which must not exist.
func (p *Postgres) CreateSchema(ctx context.Context, name string) error {
	return p.ddl(ctx, "create", name, "CREATE SCHEMA "+pgx.Identifier{name}.Sanitize())
}

// DropSchema removes a schema and all that is in it. It may not exist.
func (p *Postgres) DropSchema(ctx context.Context, name string) error {
	return p.ddl(ctx, "drop", name, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE")
}

func (p *Postgres) ddl(ctx context.Context, verb, name, sql string) error {
	if !p.Available() {
		return ErrNoServer
	}
	if _, err := p.admin.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s schema %s: %w", verb, name, err)
	}
	return nil
}

// Pool opens a pool of connections. The caller closes it. A size that the server
// has no room for is an error here, before it becomes one in the middle of a run.
func (p *Postgres) Pool(ctx context.Context, o PoolOptions) (*pgxpool.Pool, error) {
	if !p.Available() {
		return nil, ErrNoServer
	}
	if o.Size > p.room {
		return nil, fmt.Errorf("a pool of %d connections does not fit into this PostgreSQL, which allows %d: use a smaller pool or raise its max_connections", o.Size, p.room)
	}
	pool, err := p.pool(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open a pool of PostgreSQL connections: %w", err)
	}
	return pool, nil
}

func (p *Postgres) pool(ctx context.Context, o PoolOptions) (*pgxpool.Pool, error) {
	cfg := p.base.Copy()
	cfg.ConnConfig.Tracer = o.Tracer
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
		cfg.ConnConfig.AfterNetConnect = meterPostgres(o.Meter)
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
func (p *Postgres) Close() error {
	p.closing.Do(func() {
		if p.admin != nil {
			p.admin.Close()
		}
		if p.own != nil {
			if err := p.own.close(); err != nil {
				p.closed = fmt.Errorf("close postgres: %w", err)
			}
		}
	})
	return p.closed
}

// connect opens the admin pool and asks the server who it is. base is set.
func (p *Postgres) connect(ctx context.Context) error {
	server := p.base.ConnConfig
	p.info.Addr = net.JoinHostPort(server.Host, fmt.Sprint(server.Port))
	if strings.HasPrefix(server.Host, "/") {
		p.info.Addr = fmt.Sprintf("%s/.s.PGSQL.%d", server.Host, server.Port)
	}
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

// describe completes Info from what the server says.
func (p *Postgres) describe(ctx context.Context) error {
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
	if version < oldestPostgres*10000 {
		return fmt.Errorf("%w at %s: it is version %s, and %d is the oldest that works", errOldPostgres, p.info.Addr, shown, oldestPostgres)
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

// oldestPostgres is the oldest version that its authors still supported when
// this was written and that has ON CONFLICT in all forms used.
const oldestPostgres = 12

var errOldPostgres = errors.New("postgresql is too old")

func meterPostgres(m *Meter) func(context.Context, *pgconn.Config, net.Conn) (net.Conn, error) {
	return func(_ context.Context, _ *pgconn.Config, c net.Conn) (net.Conn, error) {
		return newMeterConn(c, m, &pgParser{}), nil
	}
}
