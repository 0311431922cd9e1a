package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/keep"
	"github.com/quotabench/quotabench/stores/internal/server"
)

const urls = "nats:// or tls://, further servers after commas"

var driver = stores.Driver{
	Name: "nats", Title: "NATS",
	Choices: []stores.Choice{
		{Word: "auto", Doc: "a process if nats-server is installed, else none; the default"},
		{Word: "process", Doc: "nats-server of this machine with JetStream, started as a child and removed afterwards"},
		{Word: "nats://", Doc: "servers of yours by URL, also tls://; only streams of the run's are touched"},
	},
	URLs: urls, Default: "auto", PasswordEnv: passwordEnv,
	Survey: survey, ErrorKind: errorKind,
}

// passwordEnv is that of NATS' own command line.
const passwordEnv = "NATS_PASSWORD"

func init() {
	d := driver
	d.Open = stores.Opener(Open)
	stores.Register(d)
}

// Store is one open NATS.
type Store struct {
	url            string // without user and password
	user, password string
	info           stores.Info
	own            *server.Child // nil where the server was not started here
	admin          *natsgo.Conn
	js             jetstream.JetStream
	owed           server.Owed
	keeping        *keep.Keeping // nil where the server was started here

	closing sync.Once
	closed  error
}

var _ stores.Store = (*Store)(nil)

// Open opens the NATS that spec names: "auto", "process" or URLs. auto is process
// where nats-server is found on this machine, and else an [stores.AbsentError].
//
// Errors are of one line, say how to go on, and hold no password.
func Open(ctx context.Context, spec string, o stores.Options) (*Store, error) {
	server.RemoveLeftovers(ctx, o.Dir)
	switch {
	case spec == "auto" || spec == "process":
		bin, err := find()
		if err != nil && spec == "auto" {
			return nil, &stores.AbsentError{Reason: stores.Info{Kind: stores.KindNone, Detail: err.Error()}}
		}
		if err != nil {
			return nil, err
		}
		return openProcess(ctx, bin, o)
	case strings.HasPrefix(spec, "nats://"), strings.HasPrefix(spec, "tls://"):
		return openURL(ctx, spec)
	}
	return nil, driver.Refuse(spec)
}

// Driver is "nats".
func (n *Store) Driver() string { return driver.Name }

// Info describes the server.
func (n *Store) Info() stores.Info { return n.info }

// Owned reports whether the server was started here, for this process alone.
func (n *Store) Owned() bool { return n.own != nil }

// PID is the server's process where it is a child of ours, and otherwise 0.
func (n *Store) PID() int { return n.own.PID() }

// JetStream is a client for the harness' own use. It is not metered, and is closed
// with n.
func (n *Store) JetStream() jetstream.JetStream { return n.js }

// Close ends the admin client and, where the server was started here, the server
// and its directory. On another server it tries again to remove what could not be
// removed. Only the first call does anything; all return its error.
func (n *Store) Close() error {
	n.closing.Do(func() {
		errs := []error{n.keeping.Close(&n.owed, n.wipe)}
		if n.admin != nil {
			n.admin.Close()
		}
		if n.own != nil {
			errs = append(errs, n.own.Close())
		}
		if err := errors.Join(errs...); err != nil {
			n.closed = fmt.Errorf("close nats: %w", err)
		}
	})
	return n.closed
}

// Prepare takes the lease on scope, and counts the messages in its streams. NATS needs no
// room made: a strategy makes its streams.
func (n *Store) Prepare(ctx context.Context, scope stores.Scope) (strays int64, err error) {
	_ = n.owed.Pay(ctx, n.wipe) // what still fails is tried again later
	if err := n.Lease(ctx, scope); err != nil {
		return 0, err
	}
	u, err := n.Usage(ctx, scope)
	return u.Keys, err
}

// Usage counts the messages in streams of the scope. Those of a stream without a
// largest age never expire.
func (n *Store) Usage(ctx context.Context, scope stores.Scope) (u stores.Usage, err error) {
	err = n.streams(ctx, scope, func(s *jetstream.StreamInfo) {
		u.Keys += int64(s.State.Msgs)
		if s.Config.MaxAge == 0 {
			u.WithoutTTL += int64(s.State.Msgs)
		}
	})
	return u, err
}

// Wipe removes the streams of the scope, and no others. What it cannot remove is tried
// again by the next Prepare and by Close.
func (n *Store) Wipe(ctx context.Context, scope stores.Scope) error {
	return n.owed.Note(string(scope), n.wipe(ctx, string(scope)))
}

func (n *Store) wipe(ctx context.Context, name string) error {
	scope := stores.Scope(name)
	if _, err := (board{n}).Clear(ctx, scope); err != nil {
		return err
	}
	return n.keeping.Release(ctx, scope)
}

// streams calls f for each stream of the scope.
func (n *Store) streams(ctx context.Context, scope stores.Scope, f func(*jetstream.StreamInfo)) error {
	return n.all(ctx, func(s *jetstream.StreamInfo) {
		if name := s.Config.Name; name == scope.Schema() || strings.HasPrefix(name, scope.Schema()+"_") {
			f(s)
		}
	})
}

// all calls f for each stream of the account.
func (n *Store) all(ctx context.Context, f func(*jetstream.StreamInfo)) error {
	list := n.js.ListStreams(ctx)
	for s := range list.Info() {
		f(s)
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("list its streams: %w", err)
	}
	return nil
}

// Stats is what can be told without the server's monitoring: which one it is, and
// what a child of ours has used.
func (n *Store) Stats(context.Context) (stores.Stats, error) {
	s := stores.Stats{Known: true, Incarnation: n.admin.ConnectedServerId()}
	if pid := n.PID(); pid != 0 {
		s.CPU, _ = server.CPUOfTree(pid)
	}
	return s, nil
}
