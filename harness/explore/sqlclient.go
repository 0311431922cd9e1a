package explore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sqlKind is a kind of point at which a client on PostgreSQL stops.
type sqlKind uint8

const (
	sqlStart     sqlKind = iota // has not begun
	sqlStatement                // before a statement
	sqlEnded                    // after one: nothing of its own code has run since
	sqlPause                    // between two actions of its script
	sqlWait                     // for a mutex or an event of the clock
	sqlSleep                    // until a moment of virtual time
	sqlDone
)

// sqlOp is where a client has stopped.
type sqlOp struct {
	kind  sqlKind
	text  string      // for people
	ready func() bool // nil is ready
	until time.Time   // of a sleep
}

// sqlClient is a client that runs in a goroutine of its own, since a statement
// that waits for a lock keeps whoever sent it. Between two stops it alone runs:
// the world hears of a stop by events and lets it go on by resume, and reads what
// is written here only in between.
type sqlClient struct {
	*client
	w      *sqlWorld
	name   string
	op     sqlOp  // where it stopped, and
	seen   sqlOwn // what it knew there
	own    sqlOwn // belongs to its goroutine
	resume chan struct{}

	// flying is set while a statement is with the server.
	flying bool
	// waits names those whose locks a flying statement waits for, and since is a
	// number that is larger the later it began to.
	waits string
	since int
	// hurry has the next statement look for a deadlock at once, and hurried is set
	// where one has: see setPatience.
	hurry, hurried bool
}

// sqlOwn is what a client's goroutine notes about its connection and statement.
type sqlOwn struct {
	pid   uint32 // of the server's process for the connection that was used last
	inTx  bool   // whether that is within a transaction
	reply string // of the statement that ended last
	err   error  // of that, too
}

// sqlStopped is the event that a client has stopped.
type sqlStopped struct {
	c   *sqlClient
	op  sqlOp
	own sqlOwn
}

type sqlClientKey struct{}

// park stops until the world says so. It reports whether the run goes on.
func (c *sqlClient) park(op sqlOp) bool {
	if c.w.ctx.Err() != nil {
		return false
	}
	select {
	case c.w.events <- sqlStopped{c, op, c.own}:
	case <-c.w.ctx.Done():
		return false
	}
	select {
	case <-c.resume:
		return c.w.ctx.Err() == nil
	case <-c.w.ctx.Done():
		return false
	}
}

// follow is what the client's goroutine does.
func (c *sqlClient) follow() {
	defer c.w.running.Done()
	ctx := context.WithValue(c.w.ctx, sqlClientKey{}, c)
	c.w.perform(ctx, c.client, func() bool { return c.park(sqlOp{kind: sqlPause, text: "goes on"}) })
	select {
	case c.w.events <- sqlStopped{c, sqlOp{kind: sqlDone}, c.own}:
	case <-c.w.ctx.Done():
	}
}

// sqlTracer stops clients around their statements. What else the strategy sends,
// to open, to set up or to be looked at, passes.
type sqlTracer struct{ w *sqlWorld }

var (
	_ pgx.QueryTracer = sqlTracer{}
	_ pgx.BatchTracer = sqlTracer{}
)

type sqlTracedKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (t sqlTracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return t.start(ctx, conn, statementText(d.SQL, d.Args))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t sqlTracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, d pgx.TraceQueryEndData) {
	t.end(ctx, conn, tagText(d.CommandTag), d.Err)
}

// TraceBatchStart implements pgx.BatchTracer. A batch is one step.
func (t sqlTracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	parts := make([]string, len(d.Batch.QueuedQueries))
	for i, q := range d.Batch.QueuedQueries {
		parts[i] = statementText(q.SQL, q.Arguments)
	}
	return t.start(ctx, conn, strings.Join(parts, " "))
}

// TraceBatchQuery implements pgx.BatchTracer.
func (t sqlTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (t sqlTracer) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, d pgx.TraceBatchEndData) {
	t.end(ctx, conn, "done", d.Err)
}

// sender is the client that a statement belongs to, or nil. Some are sent under a
// context of their own, such as rollbacks: they belong to who used the connection
// before.
func (t sqlTracer) sender(ctx context.Context, conn *pgx.Conn) *sqlClient {
	if c, ok := ctx.Value(sqlClientKey{}).(*sqlClient); ok {
		t.w.owners.Store(conn, c)
		return c
	}
	if t.w.outside.Load() {
		return nil
	}
	c, _ := t.w.owners.Load(conn)
	owner, _ := c.(*sqlClient)
	return owner
}

func (t sqlTracer) start(ctx context.Context, conn *pgx.Conn, text string) context.Context {
	c := t.sender(ctx, conn)
	if c == nil {
		return ctx
	}
	c.own.pid = conn.PgConn().PID()
	if wire, ok := conn.PgConn().Conn().(*sqlWire); ok {
		wire.forget()
	}
	if !c.park(sqlOp{kind: sqlStatement, text: text}) {
		return t.w.ctx // it is done, so nothing is sent
	}
	c.setPatience(ctx, conn.PgConn())
	return context.WithValue(ctx, sqlTracedKey{}, c)
}

func (t sqlTracer) end(ctx context.Context, conn *pgx.Conn, reply string, err error) {
	c, ok := ctx.Value(sqlTracedKey{}).(*sqlClient)
	if !ok {
		return
	}
	c.own.inTx = !conn.IsClosed() && conn.PgConn().TxStatus() != 'I'
	if wire, ok := conn.PgConn().Conn().(*sqlWire); ok && wire.text() != "" {
		reply = wire.text()
	}
	if err != nil {
		reply = "error: " + errorText(err)
	}
	c.own.reply, c.own.err = reply, err
	c.park(sqlOp{kind: sqlEnded})
}

// setPatience sets how long the connection's statements wait for a lock before
// they look for a deadlock, outside of what is traced: at once where others wait
// already, so that the last to join a circle is the one that fails, in every run of
// a schedule alike. Where that is not allowed the server's own setting stands.
func (c *sqlClient) setPatience(ctx context.Context, conn *pgconn.PgConn) {
	// Once it has been set it is set each time: a rollback takes it back.
	c.hurried = c.hurried || c.hurry
	if !c.hurried || !c.w.mayHurry || conn.TxStatus() == 'E' {
		return
	}
	value := "DEFAULT"
	if c.hurry {
		value = "'1ms'"
	}
	_ = conn.Exec(ctx, "SET deadlock_timeout TO "+value).Close() // it is allowed; where the connection is gone, the statement will tell
}

// statementText is a statement on one line, with its arguments in their places.
func statementText(sql string, args []any) string {
	text := strings.TrimSuffix(strings.Join(strings.Fields(sql), " "), ";")
	for i := len(args); i > 0; i-- { // $10 before $1
		shown := fmt.Sprint(args[i-1])
		if s, ok := args[i-1].(string); ok {
			shown = "'" + s + "'"
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("$%d", i), shown)
	}
	return text + ";"
}

// tagText is what a statement did, in a few words.
func tagText(tag pgconn.CommandTag) string {
	switch text := tag.String(); {
	case tag.Select() || tag.Insert() || tag.Update() || tag.Delete():
		if n := tag.RowsAffected(); n != 1 {
			return fmt.Sprintf("%d rows", n)
		}
		return "1 row"
	case text == "ROLLBACK":
		return "rolled back"
	default:
		return ""
	}
}
