package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/stores/frames"
	"github.com/quotabench/quotabench/stores"
)

// PoolOptions choose a pool of connections.
type PoolOptions struct {
	// Schema is the search path of every connection; empty leaves the server's.
	Schema string
	// Size is how many connections there may be; 0 means pgx' default.
	Size int
	// Cold closes each connection after one statement or transaction.
	Cold bool
	// Meter counts the pool's traffic; nil counts nothing.
	Meter *stores.Meter
	// DialWrap is put between the pool (and its meter) and every connection,
	// e.g. to inject faults. It sees the bytes on the wire, encrypted if the
	// connection is.
	DialWrap func(net.Conn) net.Conn
	// Timeout of a dial; 0 means the client's default. Statements have no limit
	// but their context's.
	Timeout time.Duration
	// Tracer is called around statements; nil for none.
	Tracer pgx.QueryTracer
}

// Pool opens a pool of connections. The caller closes it. A size that the server
// has no room for is an error here, before it becomes one in the middle of a run.
func (p *Store) Pool(ctx context.Context, options PoolOptions) (*pgxpool.Pool, error) {
	if options.Size > p.room {
		return nil, fmt.Errorf("a pool of %d connections does not fit into this PostgreSQL, which allows %d: "+
			"use a smaller pool or raise its max_connections", options.Size, p.room)
	}
	pool, err := p.pool(ctx, options)
	return pool, format.Wrapf(err, "open a pool of PostgreSQL connections")
}

func (p *Store) pool(ctx context.Context, options PoolOptions) (*pgxpool.Pool, error) {
	cfg := p.base.Copy()
	cfg.MinConns = 0
	cfg.MinIdleConns = 0
	if options.Tracer != nil {
		cfg.ConnConfig.Tracer = options.Tracer
	}
	if options.Schema != "" {
		// In the start-up message: it costs no statement.
		params := cfg.ConnConfig.RuntimeParams
		params["search_path"] = pgx.Identifier{options.Schema}.Sanitize()
		params["application_name"] = cmp.Or(params["application_name"], options.Schema)
	}
	if options.Timeout > 0 {
		cfg.ConnConfig.ConnectTimeout = options.Timeout
	}
	if options.DialWrap != nil {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return options.DialWrap(conn), nil
		}
	}
	if options.Meter != nil {
		cfg.ConnConfig.AfterNetConnect = metered(options.Meter, cfg.ConnConfig.AfterNetConnect)
		cfg.ConnConfig.OnPgError = losing(options.Meter, cfg.ConnConfig.OnPgError)
	}
	if options.Size > 0 {
		cfg.MaxConns = int32(options.Size)
	}
	if options.Cold {
		cfg.AfterRelease = func(*pgx.Conn) bool { return false }
	}
	// No dial and no probe in the middle of a run: they would count as the
	// strategy's.
	cfg.MaxConnLifetime = 24 * time.Hour
	cfg.MaxConnIdleTime = 24 * time.Hour
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return pgxpool.NewWithConfig(ctx, cfg)
}

// losing counts connections that the server ends: it says so, and the client closes them
// at that.
func losing(meter *stores.Meter, inner pgconn.PgErrorHandler) pgconn.PgErrorHandler {
	return func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		goOn := !strings.EqualFold(err.SeverityUnlocalized, "FATAL")
		if inner != nil {
			goOn = inner(conn, err)
		}
		if !goOn {
			meter.Lost.Add(1)
		}
		return goOn
	}
}

// netHook is called with each new connection, encrypted if it is to be.
type netHook = func(context.Context, *pgconn.Config, net.Conn) (net.Conn, error)

func metered(meter *stores.Meter, inner netHook) netHook {
	return func(ctx context.Context, cfg *pgconn.Config, conn net.Conn) (net.Conn, error) {
		if inner != nil {
			var err error
			conn, err = inner(ctx, cfg, conn)
			if err != nil {
				return nil, err
			}
		}
		return meter.Conn(conn, newParser()), nil
	}
}

// newParser makes what counts SQL statements in what a PostgreSQL client writes: one for
// each Execute of the extended protocol and for each simple Query. Preparing a
// statement by itself costs a round trip and is no statement: it sets the connection up, as
// the first message does, which has no type byte.
func newParser() stores.Parser {
	started := false
	var since kinds
	return &frames.Parser[stores.Parsed]{
		Header: make([]byte, 5), Have: 1,
		Rest: func(header []byte) (int, bool) {
			size := binary.BigEndian.Uint32(header[1:]) // counts itself
			return int(size) - 4, size >= 4 && size <= 1<<30
		},
		Count: func(header []byte, out *stores.Parsed) {
			if started {
				since.finish(header[0], out)
			} else {
				started = true
				out.Setup++
			}
		},
	}
}

// kinds of messages since the last synchronisation.
type kinds struct{ parsed, executed bool }

// finish counts a message of a kind that is complete.
func (k *kinds) finish(kind byte, out *stores.Parsed) {
	switch kind {
	case 'Q':
		out.Commands++
		out.Asks = true
	case 'P':
		k.parsed = true
	case 'E':
		out.Commands++
		k.executed = true
	case 'S': // answered
		if k.parsed && !k.executed {
			out.Setup++
		}
		*k = kinds{}
		out.Asks = true
	case 'H', 'F': // flush and function call are answered
		out.Asks = true
	case 'p': // a password
		out.Setup++
	}
}
