package nats

import (
	"context"
	"strings"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

const urls = "nats:// or tls://, further servers after commas"

// driverName is what stores of this kind are named after.
const driverName = "nats"

// passwordEnv is that of NATS' own command line.
const passwordEnv = "NATS_PASSWORD"

func init() {
	stores.Register(stores.Driver{
		Name: driverName, Title: "NATS", Noun: "stream", Clients: []string{"github.com/nats-io/"},
		Choices: []stores.Choice{
			{Word: "auto", Doc: "a process if nats-server is installed, else none; the default"},
			{Word: "process", Doc: "nats-server of this machine with JetStream, started as a child and removed afterwards"},
			{Word: "nats://", Doc: "servers of yours by URL, also tls://; only streams of the run's are touched"},
		},
		URLs: urls, Default: "auto", PasswordEnv: passwordEnv,
		Survey: survey, ErrorKind: errorKind, Open: stores.Opener(Open),
	})
}

// Store is one open NATS.
type Store struct {
	common
	self *leases.Self

	url            string // without user and password
	user, password string
	admin          *natsgo.Conn
	js             jetstream.JetStream
}

var _ stores.Keeper = (*Store)(nil)

// common has the methods that stores of every kind share.
type common = leases.Common

// Open opens the NATS that spec names: "auto", "process" or URLs. auto is process
// if nats-server is found on this machine, and otherwise an [stores.AbsentError].
//
// Errors are of one line, say how to go on, and hold no password.
func Open(ctx context.Context, spec string, options stores.Options) (*Store, error) {
	server.RemoveLeftovers(ctx, options.Dir)
	switch {
	case spec == "auto" || spec == "process":
		bin, err := find()
		if err != nil {
			return nil, cluster.Missing(spec, err)
		}
		return server.Launch(bin, 0, func(port int) (*Store, error) { return start(ctx, bin, port, options) })
	case strings.HasPrefix(spec, "nats://"), strings.HasPrefix(spec, "tls://"):
		return openURL(ctx, spec)
	}
	return nil, stores.Refuse(driverName, spec)
}

// JetStream is a client for the harness' own use. It is not metered, and is closed
// with n.
func (n *Store) JetStream() jetstream.JetStream { return n.js }

// Close ends the admin client and, if the server was started here, the server
// and its directory. On another server it tries again to remove what could not be
// removed. Only the first call does anything; all return its error.
func (n *Store) Close() error {
	return n.self.End(func() error {
		if n.admin != nil {
			n.admin.Close()
		}
		return nil
	})
}

func newStore(own server.Server, about stores.Info) *Store {
	n := &Store{self: &leases.Self{Kind: driverName, About: about, Own: own}}
	n.common = n.self.Common()
	n.self.Remove = n.remove
	n.self.Usage = n.Usage
	return n
}

// Usage counts the messages in streams of the scope. Those of a stream without a
// largest age never expire.
func (n *Store) Usage(ctx context.Context, scope stores.Scope) (usage stores.Usage, err error) {
	err = n.streams(ctx, scope, func(streamInfo *jetstream.StreamInfo) {
		usage.Keys += int64(streamInfo.State.Msgs)
		if streamInfo.Config.MaxAge == 0 {
			usage.WithoutTTL += int64(streamInfo.State.Msgs)
		}
	})
	return usage, err
}

// remove removes the streams of the scope, and no others.
func (n *Store) remove(ctx context.Context, scope stores.Scope) error {
	_, err := board{n}.Clear(ctx, scope)
	return err
}

// streams calls f for each stream of the scope.
func (n *Store) streams(ctx context.Context, scope stores.Scope, f func(*jetstream.StreamInfo)) error {
	return n.all(ctx, func(streamInfo *jetstream.StreamInfo) {
		if name := streamInfo.Config.Name; name == scope.Schema() || strings.HasPrefix(name, scope.Schema()+"_") {
			f(streamInfo)
		}
	})
}

// all calls f for each stream of the account.
func (n *Store) all(ctx context.Context, f func(*jetstream.StreamInfo)) error {
	list := n.js.ListStreams(ctx)
	for streamInfo := range list.Info() {
		f(streamInfo)
	}
	return format.Wrapf(list.Err(), "list its streams")
}

// Stats is what can be told without the server's monitoring: which one it is, and
// what a child of ours has used.
func (n *Store) Stats(context.Context) (stores.Stats, error) {
	stats := stores.Stats{Known: true, Incarnation: n.admin.ConnectedServerId()}
	if pid := n.PID(); pid != 0 {
		stats.CPU, _ = server.CPUOfTree(pid)
	}
	return stats, nil
}
