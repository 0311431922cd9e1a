package stores

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Kind says where a store comes from.
type Kind string

// The kinds.
const (
	KindURL       Kind = "url"       // a server somebody else runs
	KindProcess   Kind = "process"   // a child process of ours
	KindContainer Kind = "container" // a container of ours
	KindEmbedded  Kind = "embedded"  // miniredis inside this process
	KindModel     Kind = "model"     // no PostgreSQL: strategies use their in-process model
)

// Info describes an open store for people and reports. It holds no password.
type Info struct {
	Kind Kind
	// Detail is one line: why this kind was chosen, or what is special about it.
	Detail string
	// Version of the server, e.g. "7.0.15"; empty where there is none.
	Version string
	// Durability is one line, e.g. "no snapshots, no append-only file".
	Durability string
	// Addr is host:port or the path of a socket; empty where there is none.
	Addr string
}

// Options are what can be chosen about a store beside its kind. The zero value
// is what a run uses.
type Options struct {
	// Dir is the folder in which servers started here get their private
	// directories, and in which leftovers are looked for. Empty means [os.TempDir].
	Dir string
	// Settings are added to those of a server started here and win over them,
	// e.g. "maxmemory" for Redis or "synchronous_commit" for PostgreSQL. Other
	// kinds do not take any.
	Settings map[string]string
	// Image is the container image; empty means [DefaultRedisImage] or
	// [DefaultPostgresImage]. It must be made as the official ones are.
	Image string
	// NoPull refuses an image that is not on the machine yet, instead of asking a
	// registry for it.
	NoPull bool
}

func (o Options) dir() string {
	if o.Dir != "" {
		return o.Dir
	}
	return os.TempDir()
}

// ErrNoServer is returned where a PostgreSQL server is asked for and the model
// stands in for it.
var ErrNoServer = errors.New("no PostgreSQL server: the in-process model stands in for it")

// openTimeout bounds how long a server may take to answer for the first time.
const openTimeout = 30 * time.Second

// attemptTimeout bounds one attempt to reach a child. On a lost race for the port
// it may be a program that accepts and never answers.
const attemptTimeout = time.Second

// badSpec explains which values a store's flag takes.
func badSpec(flag, spec, urls string) error {
	shown := fmt.Sprintf("%q ", spec)
	if strings.ContainsAny(spec, "@/?") { // may be a mistyped URL, and hold a password
		shown = "value "
	}
	return fmt.Errorf("--%s %sis none of auto, process, container, embedded or a URL (%s)", flag, shown, urls)
}

// oneLine makes a text of several lines fit into an error message.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// redact takes passwords out of a text that comes from a client library.
func redact(s string, secrets ...string) string {
	for _, x := range secrets {
		if x != "" {
			s = strings.ReplaceAll(s, x, "***")
		}
	}
	return s
}
