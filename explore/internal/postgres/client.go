package postgres

import (
	"context"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/proxy/pgwire"
)

// opKind is a kind of point at which a client on PostgreSQL stops.
type opKind uint8

const (
	opStart     opKind = iota // has not begun
	opStatement               // before a statement
	opEnded                   // after one: nothing of its own code has run since
	opPause                   // between two actions of its script
	opWait                    // for a mutex or an event of the clock
	opSleep                   // until a moment of virtual time
	opDone
)

// halt is where a client has stopped.
type halt struct {
	kind  opKind
	text  string      // for people
	ready func() bool // nil is ready
	until time.Time   // of a sleep
}

// client runs in a goroutine of its own, since a statement that waits for a lock
// keeps its caller. Between two stops it alone runs: the engine hears of a stop by
// events and lets it go on by resume, and reads what is written here only in
// between.
type client struct {
	engine.Client
	instance *instance
	engine   *Engine
	halt     halt  // where it stopped, and
	seen     notes // what it knew there
	own      notes // belongs to its goroutine
	resume   chan struct{}
	number   atomic.Uint64 // of its goroutine

	// flying is set while a statement is with the server.
	flying bool
	// waits names the clients whose locks a flying statement waits for, and since is a
	// number that is larger the later it began to.
	waits string
	since int
	// hurry has the next statement look for a deadlock at once, and hurried is set
	// if one has: see setPatience.
	hurry, hurried bool
}

// notes is what a client's goroutine notes about its connection and statement.
type notes struct {
	pid      uint32 // of the server's process for the connection that was used last
	inTx     bool   // whether that is within a transaction
	reply    string // of the statement that ended last
	err      error  // of that, too
	panicked *engine.PanicError
}

// stopped is the event that a client has stopped.
type stopped struct {
	client *client
	halt   halt
	own    notes
}

type clientKey struct{}

// park stops until the world says so. It reports whether the run goes on.
func (c *client) park(h halt) bool {
	if c.engine.ctx.Err() != nil {
		return false
	}
	select {
	case c.engine.events <- stopped{c, h, c.own}:
	case <-c.engine.ctx.Done():
		return false
	}
	select {
	case <-c.resume:
		return c.engine.ctx.Err() == nil
	case <-c.engine.ctx.Done():
		return false
	}
}

// follow is what the client's goroutine does.
func (c *client) follow() {
	defer c.engine.running.Done()
	c.number.Store(stacks.Current())
	ctx := context.WithValue(c.engine.ctx, clientKey{}, c)
	c.perform(ctx)
	select {
	case c.engine.events <- stopped{c, halt{kind: opDone}, c.own}:
	case <-c.engine.ctx.Done():
	}
}

// perform goes through the script. A panic of the strategy's ends it.
func (c *client) perform(ctx context.Context) {
	defer func() {
		if value := recover(); value != nil {
			c.own.panicked = &engine.PanicError{Where: c.Name, Value: value, Stack: debug.Stack()}
		}
	}()
	c.Perform(ctx, func() bool { return c.park(halt{kind: opPause, text: "goes on"}) })
}

// tracer stops clients around their statements. What else the strategy sends,
// to open, to set up or to be looked at, passes.
type tracer struct{ engine *Engine }

var _ pgx.BatchTracer = tracer{} // which a connection finds by assertion

type tracedKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (t tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn,
	traceQueryStartData pgx.TraceQueryStartData) context.Context {
	t.engine.witnessed(ctx, traceQueryStartData.SQL, traceQueryStartData.Args)
	return t.start(ctx, conn, pgwire.Statement(traceQueryStartData.SQL, traceQueryStartData.Args))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t tracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, traceQueryEndData pgx.TraceQueryEndData) {
	t.end(ctx, conn, pgwire.Tag(traceQueryEndData.CommandTag), traceQueryEndData.Err)
}

// TraceBatchStart implements pgx.BatchTracer. A batch is one step.
func (t tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn,
	traceBatchStartData pgx.TraceBatchStartData) context.Context {
	parts := make([]string, len(traceBatchStartData.Batch.QueuedQueries))
	for i, query := range traceBatchStartData.Batch.QueuedQueries {
		t.engine.witnessed(ctx, query.SQL, query.Arguments)
		parts[i] = pgwire.Statement(query.SQL, query.Arguments)
	}
	return t.start(ctx, conn, strings.Join(parts, " "))
}

// TraceBatchQuery implements pgx.BatchTracer.
func (t tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (t tracer) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, traceBatchEndData pgx.TraceBatchEndData) {
	t.end(ctx, conn, "done", traceBatchEndData.Err)
}

// sender is the client that a statement belongs to, or nil. Some are sent under a
// context of their own, such as rollbacks: they belong to the client that used the
// connection before.
func (t tracer) sender(ctx context.Context, conn *pgx.Conn) *client {
	if c, ok := ctx.Value(clientKey{}).(*client); ok {
		t.engine.owners.Store(conn, c)
		return c
	}
	if t.engine.outside.Load() {
		return nil
	}
	value, _ := t.engine.owners.Load(conn)
	owner, _ := value.(*client)
	return owner
}

func (t tracer) start(ctx context.Context, conn *pgx.Conn, text string) context.Context {
	client := t.sender(ctx, conn)
	if client == nil {
		return ctx
	}
	client.own.pid = conn.PgConn().PID()
	if wire, ok := conn.PgConn().Conn().(*pgwire.Conn); ok {
		wire.Forget()
	}
	if !client.park(halt{kind: opStatement, text: text}) {
		return t.engine.ctx // it is done, so nothing is sent
	}
	client.setPatience(ctx, conn.PgConn())
	return context.WithValue(ctx, tracedKey{}, client)
}

func (t tracer) end(ctx context.Context, conn *pgx.Conn, reply string, err error) {
	c, ok := ctx.Value(tracedKey{}).(*client)
	if !ok {
		return
	}
	c.own.inTx = !conn.IsClosed() && conn.PgConn().TxStatus() != 'I'
	if wire, ok := conn.PgConn().Conn().(*pgwire.Conn); ok && wire.Text() != "" {
		reply = wire.Text()
	}
	if err != nil {
		reply = "error: " + pgwire.Error(err)
	}
	c.own.reply = reply
	c.own.err = err
	c.park(halt{kind: opEnded})
}

// setPatience sets how long the connection's statements wait for a lock before
// they look for a deadlock, outside of what is traced: at once if others wait
// already, so that the last to join a circle is the one that fails, in every run of
// a schedule alike. If that is not allowed the server's own setting stands.
func (c *client) setPatience(ctx context.Context, conn *pgconn.PgConn) {
	// Once it has been set it is set each time: a rollback takes it back.
	c.hurried = c.hurried || c.hurry
	if !c.hurried || !c.engine.mayHurry || conn.TxStatus() == 'E' {
		return
	}
	value := "DEFAULT"
	if c.hurry {
		value = "'1ms'"
	}
	// it is allowed; if the connection is gone, the statement will tell
	_ = conn.Exec(ctx, "SET deadlock_timeout TO "+value).Close()
}
