package stores

import "github.com/quotabench/quotabench/internal/format"

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
	// ReadOnly has a server of others opened without trying what a run does there. Nothing is written to it, and PostgreSQL
	// is asked to refuse what would.
	ReadOnly bool
}

// AbsentError is the error of a store that is neither available nor required:
// an in-process model stands in for it if a strategy can use one. A [Set]
// records it with [Set.AddAbsent].
type AbsentError struct {
	// Reason describes what stands in, and why.
	Reason Info
}

func (e *AbsentError) Error() string { return e.Reason.Detail }
