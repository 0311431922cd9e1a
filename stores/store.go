package stores

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
)

// Store is one open store of a run, whatever its kind. A run knows its stores by
// name (see [Set]): "redis", "redis.replica", "postgres", "postgres.2".
type Store interface {
	// Driver names the kind of store, e.g. "redis".
	Driver() string
	// Info describes the store for people and reports. It holds no password.
	Info() Info
	// Owned reports whether the store was started here, for this process alone.
	Owned() bool
	// Prepare makes room for what one strategy keeps under scope: a schema in
	// PostgreSQL, nothing in Redis. It returns how many keys or rows exist under the
	// scope already, which is 0 in a run that may be believed.
	Prepare(ctx context.Context, scope Scope) (strays int64, err error)
	// Connect opens a client for one application instance, with all connections of
	// its pool established. What the client is depends on the driver: see [Conn].
	Connect(ctx context.Context, scope Scope, options ConnOptions) (Conn, error)
	// Stats is what the store says about itself. Known is false if it keeps no
	// statistics, which is the case of an embedded one.
	Stats(ctx context.Context) (Stats, error)
	// Usage counts what is kept under scope: nothing under one that was never prepared.
	Usage(ctx context.Context, scope Scope) (Usage, error)
	// Wipe removes what is kept under scope, and nothing else.
	Wipe(ctx context.Context, scope Scope) error
	// Close ends the harness' own connections, and the store if it was started
	// here. Only the first call does anything; all return its error.
	Close() error
}

// Scope is the name of all that one strategy keeps in one run: letters, digits
// and underscores. Redis keys begin with [Scope.Prefix], PostgreSQL keeps all in
// the schema [Scope.Schema].
type Scope string

// Prefix begins every Redis key of the scope.
func (s Scope) Prefix() string { return "quotabench:" + string(s) + ":" }

// Schema is the PostgreSQL schema of the scope.
func (s Scope) Schema() string { return "quotabench_" + string(s) }

// Conn is one application instance's client of a store.
type Conn interface {
	// Client is what a strategy is given: a [redis.UniversalClient] of a Redis, a
	// [*pgxpool.Pool] of a PostgreSQL.
	Client() any
	// Close ends the client's connections.
	Close() error
}

// ConnOptions choose a client.
type ConnOptions struct {
	// Pool is the most connections, at least 1. They are opened at once.
	Pool int
	// Cold has every command, pipeline or transaction open a connection and close it
	// again, as a function does that is started for each call. None is opened
	// beforehand.
	Cold bool
	// Retries is how often a Redis client repeats a failed command by itself. A
	// PostgreSQL pool never does.
	Retries int
	// Redirected is set if keys are to move to other servers of a cluster: its client then follows them as it does by
	// itself, by up to three repetitions.
	Redirected bool
	// Meter counts the client's traffic; nil counts nothing.
	Meter *Meter
	// Wrap is put between the client (and its meter) and every connection, e.g. to
	// inject faults; nil for nothing.
	Wrap func(net.Conn) net.Conn
	// Timeout of a dial, and in Redis of a read and a write too; 0 is the client
	// library's own default.
	Timeout time.Duration
}

// Stats is what a store says about itself. Counts are since its start and
// include what the harness did; 0 if a kind of store has no such figure.
type Stats struct {
	// Known is false if the store keeps no statistics.
	Known bool
	// Incarnation names this start of the server, or of each server that answered,
	// separated by commas. See [Restarted].
	Incarnation string
	// Commands processed, for all clients.
	Commands int64
	// Evicted keys.
	Evicted int64
	// Forks to save data or to start a replica; Forking while one runs.
	Forks   int64
	Forking bool
	// CPU time of the server in user and system mode.
	CPU time.Duration
	// Memory in bytes, as the server's allocator counts.
	Memory int64
}

// Restarted reports whether one of the servers that now names was started since before,
// or took the place of another. A server that did not answer is no such case.
func Restarted(before, now string) bool {
	if before == "" {
		return false
	}
	known := strings.Split(before, ",")
	for id := range strings.SplitSeq(now, ",") {
		if id != "" && !slices.Contains(known, id) {
			return true
		}
	}
	return false
}

// Usage is what a scope holds.
type Usage struct {
	// Keys, and those among them that never expire; 0 for stores without keys.
	Keys, WithoutTTL int64
	// Rows of all tables; 0 for stores without tables.
	Rows int64
	// Bytes that the store itself says it takes for them, its own overhead included; 0
	// if it does not say. Those of very many keys are estimated from a part of them.
	Bytes int64
}

// Counter is a [Store] that can tell at any time how many keys it has, without looking at
// them.
type Counter interface {
	Store
	// Count counts the keys of all scopes, and of others than quotabench. Keys that have
	// expired count until the store has removed them. Bytes are those of the whole data set.
	Count(ctx context.Context) (Usage, error)
}

// PoolUse is how a client's pool of connections was used since it was opened.
type PoolUse struct {
	// Taken counts connections that were taken from the pool.
	Taken int64
	// Waited counts those for which the caller had to wait, since all were in use.
	Waited int64
	// Wait is the sum of these waits. What was given up before it got a connection is not
	// in it.
	Wait time.Duration
}

// Sub returns what was used between the earlier state and u.
func (u PoolUse) Sub(earlier PoolUse) PoolUse {
	return PoolUse{Taken: u.Taken - earlier.Taken, Waited: u.Waited - earlier.Waited, Wait: u.Wait - earlier.Wait}
}

// Add returns both together.
func (u PoolUse) Add(poolUse PoolUse) PoolUse {
	return PoolUse{Taken: u.Taken + poolUse.Taken, Waited: u.Waited + poolUse.Waited, Wait: u.Wait + poolUse.Wait}
}

// Pooled is a [Conn] that can tell how its pool was used, at any time.
type Pooled interface {
	Conn
	PoolUse() PoolUse
}

// Place says where a store runs, seen from this process.
type Place string

// The places.
const (
	InProcess   Place = "in-process" // embedded: it has no processes of its own
	StartedHere Place = "started"    // a server on this machine, started for this process
	OnThisHost  Place = "host"       // a server on this machine that was running already
	Elsewhere   Place = "elsewhere"  // on another machine, or unknown
)

// Placed is a [Store] that knows where it runs. A store need not be one: it is then
// taken to be [Elsewhere]. The store with place [StartedHere] has processes and can
// be confined; the methods of any other return errors.
type Placed interface {
	// Place is where the store runs.
	Place() Place
	// Processes are the numbers of the server's processes at this moment, parents
	// before their children.
	Processes(ctx context.Context) ([]int, error)
	// Confine lets the server run on the given cores alone, by the system's numbers of
	// logical processors, with processes that it starts later. A wider set takes an
	// earlier one back.
	Confine(ctx context.Context, cores []int) error
}

// PlaceOf returns where a store runs.
func PlaceOf(store Store) Place {
	if placed, ok := store.(Placed); ok {
		return placed.Place()
	}
	return Elsewhere
}

// Kind says where a store comes from.
type Kind string

// The kinds.
const (
	KindURL       Kind = "url"       // a server that was running already
	KindProcess   Kind = "process"   // a child process of ours
	KindContainer Kind = "container" // a container of ours
	KindEmbedded  Kind = "embedded"  // miniredis inside this process
	KindModel     Kind = "model"     // no PostgreSQL: strategies use their in-process model
	KindNone      Kind = "none"      // there is none, and nothing stands in for it
	KindClient    Kind = "client"    // what a client leads to that the caller had already
)

// Info describes an open store for people and reports. It holds no password.
type Info struct {
	Kind Kind
	// Detail is one line: why this kind was chosen, or what is special about it.
	Detail string
	// Version of the server, e.g. "7.0.15"; empty if there is none.
	Version string
	// Durability is one line, e.g. "no snapshots, no append-only file".
	Durability string
	// Evicts is set if it was started so as to drop keys when its memory is full.
	Evicts bool
	// Addr is host:port or the path of a socket; empty if there is none.
	Addr string
}

// Text is all but the address in one line.
func (i Info) Text() string {
	return format.Join("; ", format.Join(" ", string(i.Kind), i.Version), i.Durability, i.Detail)
}

// Options are what can be chosen about a store in addition to its kind. The
// zero value is what a run uses.
type Options struct {
	// Dir is the folder in which servers started here get their private
	// directories, and in which leftovers are looked for. Empty means [os.TempDir].
	Dir string
	// KeepLeftovers leaves alone what dead processes left in Dir.
	KeepLeftovers bool
	// Settings are added to those of a server started here and win over them,
	// e.g. "maxmemory" for Redis or "synchronous_commit" for PostgreSQL. Other
	// kinds do not take any.
	Settings map[string]string
	// Image is the container image; empty means [Driver.Image]. It must be made as
	// the official ones are.
	Image string
	// NoPull refuses an image that is not on the machine yet, instead of asking a
	// registry for it.
	NoPull bool
}

// AbsentError is the error of a store that is neither available nor required:
// an in-process model stands in for it if a strategy can use one. A [Set]
// records it with [Set.AddAbsent].
type AbsentError struct {
	// Reason describes what stands in, and why.
	Reason Info
}

func (e *AbsentError) Error() string { return e.Reason.Detail }
