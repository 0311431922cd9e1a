package service

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/explore/internal/database"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// The kinds of stores that commands are for.
const (
	redisStore    = string(strategies.NeedRedis)
	postgresStore = string(strategies.NeedPostgres)
)

// sql is the PostgreSQL that the instances of a set share: a database of its own, whose tables are before each run as
// they were when the instances had started.
type sql struct {
	server   stores.Store
	scope    stores.Scope
	pool     *pgxpool.Pool // one connection to the database; it holds no lock while clients run
	config   *pgconn.Config
	password string // of the instances' doors

	rows *database.Rows
	kept *database.Kept
	// named are the names of the rows that were seen.
	named map[string]bool
	// owners are the clients whose statements were held, by their sessions.
	owners map[uint32]*client
	// waited counts the statements that have waited for a lock.
	waited int
}

// A statement that waits for a lock looks for a deadlock after deadlockTimeout. A step in which one has begun to wait
// takes longer than that, so that the last one that joins a circle is the one that fails.
const (
	deadlockTimeout = time.Millisecond
	deadlockLooked  = 5 * time.Millisecond
)

// openSQL makes the database, and connects to it.
func openSQL(ctx context.Context, server stores.Store) (_ *sql, err error) {
	s := &sql{server: server, scope: stores.Scope("explore_" + strings.ToLower(crand.Text()[:16])), password: crand.Text(),
		named: map[string]bool{}, owners: map[uint32]*client{}}
	if _, err := server.Prepare(ctx, s.scope); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	config, err := s.makeDatabase(ctx)
	if err != nil {
		return nil, err
	}
	s.config = &config.ConnConfig.Config
	s.config.RuntimeParams["synchronous_commit"] = "off"
	s.pool, err = pgxpool.NewWithConfig(ctx, config.Copy())
	if err != nil {
		return nil, err
	}
	setting := strconv.FormatInt(deadlockTimeout.Milliseconds(), 10)
	if _, err := s.pool.Exec(ctx, "SET deadlock_timeout TO "+setting); err == nil { // which not every user may
		s.config.RuntimeParams["deadlock_timeout"] = setting
	}
	return s, nil
}

// makeDatabase makes the database, and returns how to connect to it. The server removes it with the scope.
func (s *sql) makeDatabase(ctx context.Context) (*pgxpool.Config, error) {
	conn, err := s.server.Connect(ctx, s.scope, stores.ConnOptions{Pool: 1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	pool, ok := conn.Client().(*pgxpool.Pool)
	if !ok {
		return nil, unfit("a service is explored on a PostgreSQL server, which %s is not", s.server.Driver())
	}
	config := pool.Config()
	_, err = pool.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{s.scope.Schema()}.Sanitize())
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == insufficientPrivilege {
		user := pgx.Identifier{config.ConnConfig.User}.Sanitize()
		return nil, unfit("the search makes a database of its own, which PostgreSQL does not allow: ALTER ROLE %s CREATEDB",
			user)
	}
	if err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	config.ConnConfig.Database = s.scope.Schema()
	delete(config.ConnConfig.RuntimeParams, "search_path")
	return config, nil
}

const insufficientPrivilege = "42501"

// close removes all that was made on the server.
func (s *sql) close() error {
	if s == nil {
		return nil
	}
	if s.pool != nil {
		s.pool.Close()
	}
	return s.server.Wipe(context.Background(), s.scope)
}

// version is what the server calls itself.
func (s *sql) version() string {
	number, _, _ := strings.Cut(s.server.Info().Version, " ") // not who packaged it
	return "PostgreSQL " + number
}

// given are the variables by which an instance finds its door.
func (s *sql) given(addr string) [][2]string {
	const user, name = "quotabench", "quotabench"
	host, port, _ := net.SplitHostPort(addr)
	return [][2]string{
		{"DATABASE_URL", fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", user, s.password, addr, name)},
		{"PGHOST", host}, {"PGPORT", port}, {"PGUSER", user}, {"PGPASSWORD", s.password}, {"PGDATABASE", name},
		{"PGSSLMODE", "disable"},
	}
}

// keep remembers the tables of all schemas once the instances have started.
func (s *sql) keep(ctx context.Context) (err error) {
	const all = `SELECT set_config('search_path', string_agg(quote_ident(nspname), ', ' ORDER BY nspname <> 'public', oid), false)
		FROM pg_namespace WHERE nspname <> 'information_schema' AND NOT starts_with(nspname, 'pg_')`
	if _, err := s.pool.Exec(ctx, all); err != nil {
		return fmt.Errorf("list the schemas: %w", err)
	}
	s.rows, err = database.ReadRows(ctx, s.pool)
	if err != nil {
		return err
	}
	s.kept, err = database.Keep(ctx, s.pool)
	return err
}

// look returns the rows that are stored, for people.
func (s *sql) look(ctx context.Context) []fakeredis.Key {
	if s == nil {
		return nil
	}
	rows := s.rows.Look(ctx)
	for _, row := range rows {
		s.named[row.Name] = true
	}
	return rows
}

// isRow reports whether a name of what is stored is that of a row.
func (s *sql) isRow(name string) bool { return s != nil && s.named[name] }

// restoreTables has the tables be as they were at the start. An instance that keeps one locked starts anew.
func (w *Engine) restoreTables() error {
	if w.sql == nil || w.sql.kept == nil {
		return nil
	}
	if err := w.sessionsEnd(); err != nil {
		return err
	}
	clear(w.sql.owners)
	err := w.sql.kept.Restore(w.base)
	if err == nil {
		return nil
	}
	var errs []error
	for _, instance := range w.instances {
		errs = append(errs, instance.end())
	}
	if err := errors.Join(append(errs, w.sessionsEnd())...); err != nil {
		return err
	}
	return w.sql.kept.Restore(w.base)
}

// sessionsEnd waits until the server has ended the sessions whose connections were closed, and with them their
// transactions. One that waits for a lock does not notice by itself that its connection is gone.
func (w *Engine) sessionsEnd() error {
	if w.sql == nil {
		return nil
	}
	var sessions []int32
	for _, instance := range w.instances {
		for _, session := range instance.proxy.Left() {
			sessions = append(sessions, int32(session))
		}
	}
	if len(sessions) == 0 {
		return nil
	}
	const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY($1)"
	if _, err := w.sql.pool.Exec(w.base, end, sessions); err != nil {
		return fmt.Errorf("end connections: %w", err)
	}
	for deadline := wall.Now().Add(w.Setup.Patience); wall.Now().Before(deadline); time.Sleep(time.Millisecond) {
		ended, err := database.Ended(w.base, w.sql.pool, sessions)
		if err != nil || ended {
			return err
		}
	}
	return fmt.Errorf("sessions %v of PostgreSQL do not end within %v", sessions, w.Setup.Patience)
}

// How long a statement is waited for before the server is asked about locks, and at most between two questions.
const (
	landFirst = time.Millisecond
	landMost  = 10 * time.Millisecond
)

// lands waits until the command of a client that was sent has a reply, or waits for a lock of another session of the
// instances, which it reports.
func (w *Engine) lands(c *client) (blocked bool, err error) {
	got := c.held.Got()
	if w.sql == nil || c.held.Store() != postgresStore {
		<-got
		return false, nil
	}
	wait := landFirst
	if c.flies {
		wait = 0
	}
	deadline := wall.Now().Add(w.Setup.Patience)
	for wall.Now().Before(deadline) {
		select {
		case <-got:
			return false, nil
		case <-w.base.Done():
			return false, w.base.Err()
		case <-time.After(wait):
		}
		blocked, err = w.waitsForLock(c)
		if err != nil || blocked {
			return blocked, err
		}
		wait = min(max(landFirst, 2*wait), landMost)
	}
	c.stuck = fmt.Sprintf("%s gets no answer from PostgreSQL within %v: %s", c.Name, w.Setup.Patience, c.text)
	return true, nil
}

// waitsForLock reports whether a client's statement waits for sessions of the instances, and notes whose they are.
// Waiting in a circle does not count: the server is about to end that.
func (w *Engine) waitsForLock(c *client) (bool, error) {
	session := int32(c.held.Session())
	asked := []int32{session}
	for _, other := range w.callers {
		if other.flies && other != c {
			asked = append(asked, int32(other.held.Session()))
		}
	}
	blocked, err := database.Blocked(w.base, w.sql.pool, asked)
	if err != nil || len(blocked[session]) == 0 || database.Circular(blocked) {
		return false, err
	}
	var names []string
	for _, on := range blocked[session] {
		owner := w.sql.owners[uint32(on)]
		if owner == nil {
			return false, nil
		}
		names = append(names, owner.Name)
	}
	slices.Sort(names)
	c.waitsFor = strings.Join(slices.Compact(names), " and ")
	return true, nil
}

// flies notes that a client's statement waits for a lock: it takes no step until it goes on in a step of another.
func (w *Engine) flies(c *client) {
	w.sql.waited++
	c.since = w.sql.waited
	c.flies = true
	w.Run.Waited = true
	c.told(c.text, "waits for "+c.waitsFor)
	time.Sleep(deadlockLooked)
}

// landed lets the clients go on whose statements have got what they waited for, one after the other: the one first that
// has waited the longest.
func (w *Engine) landed() error {
	if w.sql == nil {
		return nil
	}
	if err := w.sessionsEnd(); err != nil {
		return err
	}
	for again := true; again; {
		again = false
		waiting := slices.DeleteFunc(slices.Clone(w.callers), func(c *client) bool { return !c.flies || c.stuck != "" })
		slices.SortFunc(waiting, func(a, b *client) int { return cmp.Compare(a.since, b.since) })
		for _, client := range waiting {
			blocked, err := w.lands(client)
			if err != nil {
				return err
			}
			if blocked {
				continue
			}
			again = true
			if err := w.goesOn(client); err != nil {
				return err
			}
		}
	}
	return nil
}

// goesOn has a client go on that has waited for a lock, on a line of its own.
func (w *Engine) goesOn(c *client) error {
	c.flies = false
	timeline := &w.Run.Timeline
	timeline.Start()
	timeline.By(c.Name, codes.RoleClient, c.Index, codes.EventResume)
	err := w.replied(c, "goes on")
	if err == nil {
		timeline.End(w.now.Sub(w.Setup.Begins()), &w.Run.Truth)
	}
	return err
}
