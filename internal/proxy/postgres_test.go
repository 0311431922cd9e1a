package proxy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/proxy"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

var wall clock.Wall

const doorPassword = "of-the-door"

// sqlDoor is a proxy before a PostgreSQL, and how to connect to it.
func sqlDoor(t *testing.T) (*proxy.Proxy, *proxy.Door, *pgx.ConnConfig) {
	t.Helper()
	pool := storetest.PostgresPool(t)
	p := proxy.New()
	door, err := p.Postgres(doorPassword, &pool.Config().ConnConfig.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Foul(), p.Close()); err != nil {
			t.Error(err)
		}
	})
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://any:%s@%s/any?sslmode=disable", doorPassword, door.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	return p, door, config
}

func connect(t *testing.T, config *pgx.ConnConfig) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// heldStatements waits until so many statements are held.
func heldStatements(t *testing.T, p *proxy.Proxy, n int) []*proxy.Command {
	t.Helper()
	limit := wall.Now().Add(patience)
	for held := p.Held(); ; held = p.Held() {
		if len(held) == n {
			return held
		}
		if wall.Now().After(limit) {
			t.Fatalf("%d statements are held, want %d", len(held), n)
		}
		select {
		case <-p.Changed():
		case <-time.After(time.Millisecond):
		}
	}
}

// release has the first statement that is held take effect, and returns it with its reply.
func release(t *testing.T, p *proxy.Proxy, n int) (statement, reply string) {
	t.Helper()
	held := heldStatements(t, p, n)[0]
	reply, err := held.Send()
	if err != nil {
		t.Fatal(err)
	}
	held.Answer()
	return held.Parts()[0][0], reply
}

// TestStatementsAreHeld: each statement of each protocol is a step with its parameters and its reply, and what changes
// no data passes.
func TestStatementsAreHeld(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec,
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec} {
		t.Run(mode.String(), func(t *testing.T) {
			p, _, config := sqlDoor(t)
			config.DefaultQueryExecMode = mode
			conn := connect(t, config)
			if _, err := conn.Exec(t.Context(), "CREATE TABLE counts (name text PRIMARY KEY, n int8)"); err != nil {
				t.Fatal(err)
			}
			p.Hold(true)
			done := begin(func() error {
				for _, passes := range []string{"SET application_name TO 'x'", "SELECT 1", "-- a note\nSHOW search_path"} {
					if _, err := conn.Exec(t.Context(), passes); err != nil {
						return err
					}
				}
				if _, err := conn.Exec(t.Context(), "INSERT INTO counts VALUES ($1, $2)", "it's", 7); err != nil {
					return err
				}
				var n int64
				err := conn.QueryRow(t.Context(), "SELECT n FROM counts WHERE name = $1", "it's").Scan(&n)
				if err == nil && n != 7 {
					err = fmt.Errorf("read %d", n)
				}
				_, wrong := conn.Exec(t.Context(), "SELECT nothing")
				if wrong == nil {
					err = errors.Join(err, errors.New("a wrong statement succeeds"))
				}
				return err
			})
			insert, reply := release(t, p, 1)
			if !strings.HasPrefix(insert, "INSERT INTO counts VALUES (") || !strings.Contains(insert, "7") || reply != "1 row" {
				t.Errorf("%q answers %q", insert, reply)
			}
			read, reply := release(t, p, 1)
			if !strings.HasPrefix(read, "SELECT n FROM counts WHERE name = ") || reply != "7" {
				t.Errorf("%q answers %q", read, reply)
			}
			p.Hold(false)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if passed := p.Passed(); len(passed) > 0 {
				t.Errorf("passed: %q", passed)
			}
		})
	}
}

// TestTransactionIsSteps: BEGIN and COMMIT are steps, and one that waits for a lock has no reply until it is given up.
func TestTransactionIsSteps(t *testing.T) {
	p, _, config := sqlDoor(t)
	holder, other := connect(t, config), connect(t, config)
	p.Hold(true)
	lock := func(conn *pgx.Conn) chan error {
		return begin(func() error {
			return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(7)")
				return err
			})
		})
	}
	first := lock(holder)
	for _, want := range []string{"begin;", "SELECT pg_advisory_xact_lock(7);"} {
		if got, _ := release(t, p, 1); got != want {
			t.Errorf("%q is held, want %q", got, want)
		}
	}
	commit := heldStatements(t, p, 1)[0]
	second := lock(other)
	held := heldStatements(t, p, 2)
	begins := held[slices.IndexFunc(held, func(c *proxy.Command) bool { return c != commit })]
	if _, err := begins.Send(); err != nil {
		t.Fatal(err)
	}
	begins.Answer()
	held = heldStatements(t, p, 2)
	waits := held[slices.IndexFunc(held, func(c *proxy.Command) bool { return c != commit })]
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-waits.Got():
		t.Fatal("a lock is had twice")
	case <-time.After(20 * time.Millisecond): // it could come later: then the test is weaker, and does not fail
	}
	if _, err := commit.Send(); err != nil {
		t.Fatal(err)
	}
	commit.Answer()
	<-waits.Got()
	p.Hold(false)
	waits.Answer()
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
}

// TestPipelineOfStatements: what is sent up to a Sync is one step.
func TestPipelineOfStatements(t *testing.T) {
	p, _, config := sqlDoor(t)
	conn := connect(t, config)
	p.Hold(true)
	done := begin(func() error {
		batch := &pgx.Batch{}
		batch.Queue("SELECT 2")
		batch.Queue("SELECT $1::text", "three")
		return conn.SendBatch(t.Context(), batch).Close()
	})
	held := heldStatements(t, p, 1)[0]
	if parts := held.Parts(); len(parts) != 2 || parts[1][0] != "SELECT 'three'::text;" {
		t.Errorf("held: %q", parts)
	}
	p.Hold(false)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWhoReachesPostgres: only who knows the door's password, and without TLS, which a client that insists is told of.
func TestWhoReachesPostgres(t *testing.T) {
	p, door, config := sqlDoor(t)
	wrong := config.Copy()
	wrong.Password = "another"
	_, err := pgx.ConnectConfig(t.Context(), wrong)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "28P01" || door.Barred() != 1 {
		t.Errorf("another password: %v, %d barred", err, door.Barred())
	}
	encrypted := config.Copy()
	encrypted.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	if _, err := pgx.ConnectConfig(t.Context(), encrypted); err == nil {
		t.Error("there is TLS")
	}
	limit := wall.Now().Add(patience)
	for !door.Insists() && wall.Now().Before(limit) {
		time.Sleep(time.Millisecond)
	}
	if !door.Insists() {
		t.Error("nobody is said to insist on TLS")
	}
	replication := config.Copy()
	replication.RuntimeParams["replication"] = "database"
	if _, err := pgx.ConnectConfig(t.Context(), replication); err == nil {
		t.Error("there is replication")
	}
	if conn := connect(t, config); conn.Ping(t.Context()) != nil || p.Foul() != nil {
		t.Error("the right password is refused")
	}
}

// TestStatementIsCancelled: a client that gives a statement up has the server end it.
func TestStatementIsCancelled(t *testing.T) {
	_, _, config := sqlDoor(t)
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: patience}
	}
	conn := connect(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := conn.Exec(ctx, "SELECT pg_sleep(1000)"); err == nil {
		t.Error("it ends by itself")
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Errorf("the connection is of no use any more: %v", err)
	}
}
