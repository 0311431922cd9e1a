package stores

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// Meter counts the traffic of all connections that were opened with it. It may
// be read at any time. The zero value is ready.
//
// What a connection does before it can serve (greeting, login, choice of a
// database) is not part of these figures, except the two that name it.
type Meter struct {
	// Commands that were written: Redis commands, or SQL statements executed.
	Commands atomic.Int64
	// RoundTrips are writes that were answered: any number of commands in one
	// go, then the first bytes of a reply.
	RoundTrips atomic.Int64
	// BytesOut and BytesIn are what the client wrote and read, before encryption.
	BytesOut atomic.Int64
	BytesIn  atomic.Int64
	// Connections that were opened, and SetupCommands that opening them took.
	Connections   atomic.Int64
	SetupCommands atomic.Int64
	// Lost counts connections that the other side ended, or that failed otherwise than by
	// a deadline of their user's.
	Lost atomic.Int64
	// Unparsed counts connections whose traffic could not be followed to its
	// end. If it is not 0, Commands is too low.
	Unparsed atomic.Int64
}

// Counts is a Meter's state at one moment.
type Counts struct {
	Commands, RoundTrips, BytesOut, BytesIn int64
	Connections, SetupCommands              int64
	Lost, Unparsed                          int64
}

// Snapshot reads the counters. Commands in flight may be in some and not in
// others.
func (m *Meter) Snapshot() Counts {
	return Counts{
		Commands: m.Commands.Load(), RoundTrips: m.RoundTrips.Load(),
		BytesOut: m.BytesOut.Load(), BytesIn: m.BytesIn.Load(),
		Connections: m.Connections.Load(), SetupCommands: m.SetupCommands.Load(),
		Lost: m.Lost.Load(), Unparsed: m.Unparsed.Load(),
	}
}

// Sub returns what was counted between the earlier snapshot and c.
func (c Counts) Sub(earlier Counts) Counts {
	return Counts{
		Commands: c.Commands - earlier.Commands, RoundTrips: c.RoundTrips - earlier.RoundTrips,
		BytesOut: c.BytesOut - earlier.BytesOut, BytesIn: c.BytesIn - earlier.BytesIn,
		Connections: c.Connections - earlier.Connections, SetupCommands: c.SetupCommands - earlier.SetupCommands,
		Lost: c.Lost - earlier.Lost, Unparsed: c.Unparsed - earlier.Unparsed,
	}
}

// Parsed is what one write contained. A request counts in the write that has its last byte.
type Parsed struct {
	// Commands that work is done with.
	Commands int64
	// Setup commands, which make the connection ready.
	Setup int64
	// Asks is set if the server will answer something that is not set-up.
	Asks bool
}

// Parser follows what one connection's client writes, in pieces of any size.
type Parser interface {
	// Parse reads the next piece. It returns false, for good, when it can no
	// longer follow.
	Parse(data []byte) (Parsed, bool)
}

// meterConn counts on the way through. Writes come from one goroutine at a time
// and so do reads, but the two may be different ones.
type meterConn struct {
	net.Conn
	meter  *Meter
	parser Parser                         // nil once it has lost its way
	told   interface{ Commands(n int64) } // c, if it wants to know; else nil
	// live is set by the first write beyond set-up.
	live atomic.Bool
	// waiting is set from a write to the first bytes of its reply.
	waiting atomic.Bool
	// lost is set once the connection counts as lost.
	lost atomic.Bool
	// late is set once its user's time was over.
	late atomic.Bool
}

// Conn wraps a connection that was just opened, so that m counts what parser finds in
// its traffic. The result offers access to the socket exactly if conn does:
// go-redis looks at the socket of an idle connection before each use, and
// metering must not change that. If conn has a method Commands(n int64), it is called before
// each write with how many commands that completes.
func (m *Meter) Conn(conn net.Conn, parser Parser) net.Conn {
	m.Connections.Add(1)
	mc := &meterConn{Conn: conn, meter: m, parser: parser}
	mc.told, _ = conn.(interface{ Commands(n int64) })
	if sc, ok := conn.(syscall.Conn); ok {
		return &meterSyscallConn{mc, sc}
	}
	return mc
}

// Around puts around a connection that was dialled what a client's are to have around
// them: what o wraps it in, and a meter that reads by parser.
func (o ConnOptions) Around(conn net.Conn, parser Parser) net.Conn {
	if o.Wrap != nil {
		conn = o.Wrap(conn)
	}
	if o.Meter != nil {
		conn = o.Meter.Conn(conn, parser)
	}
	return conn
}

type meterSyscallConn struct {
	*meterConn
	sys syscall.Conn
}

func (c *meterSyscallConn) SyscallConn() (syscall.RawConn, error) { return c.sys.SyscallConn() }

func (c *meterConn) Write(data []byte) (int, error) {
	var got Parsed
	if c.parser != nil {
		var ok bool
		got, ok = c.parser.Parse(data)
		if !ok {
			c.parser = nil
			c.meter.Unparsed.Add(1)
		}
	}
	if c.told != nil && c.parser != nil {
		c.told.Commands(got.Commands)
	}
	// All before the write: if another goroutine reads, the reply may be there before
	// Write returns.
	c.meter.count(got, 1)
	if got.Commands > 0 || got.Asks || c.parser == nil {
		if !c.live.Load() {
			c.live.Store(true)
		}
		c.waiting.Store(true)
	}
	live := c.live.Load()
	n, err := c.Conn.Write(data)
	if live {
		c.meter.BytesOut.Add(int64(n))
	}
	if err != nil { // the connection is lost, and the server has not seen the whole
		c.meter.count(got, -1)
		c.failed(err)
	}
	return n, err
}

// failed counts the connection as lost, once, unless it was its user who gave it up.
func (c *meterConn) failed(err error) {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.late.Store(true)
		return
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF) && c.late.Load(): // pgx says goodbye, and reads on
		return
	}
	if c.lost.CompareAndSwap(false, true) {
		c.meter.Lost.Add(1)
	}
}

// count adds commands that go out, or with -1 takes them back.
func (m *Meter) count(parsed Parsed, times int64) {
	m.Commands.Add(times * parsed.Commands)
	if parsed.Setup > 0 {
		m.SetupCommands.Add(times * parsed.Setup)
	}
}

func (c *meterConn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if n > 0 && c.live.Load() {
		c.meter.BytesIn.Add(int64(n))
		if c.waiting.Load() && c.waiting.CompareAndSwap(true, false) {
			c.meter.RoundTrips.Add(1)
		}
	}
	if err != nil {
		c.failed(err)
	}
	return n, err
}
