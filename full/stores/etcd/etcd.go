package etcd

import (
	"context"
	"crypto/tls"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

const urls = "http:// or https://, further members after commas"

// driverName is what stores of this kind are named after.
const driverName = "etcd"

// passwordEnv is etcdctl's own.
const passwordEnv = "ETCDCTL_PASSWORD"

func init() {
	stores.Register(stores.Driver{
		Name: driverName, Title: "etcd", Clients: []string{"go.etcd.io/", "google.golang.org/"},
		Choices: []stores.Choice{
			{Word: "auto", Doc: "a process if etcd is installed, else none; the default"},
			{Word: "process", Doc: "etcd of this machine, one member, started as a child and removed afterwards"},
			{Word: "process:members=3", Doc: "a cluster of so many members, up to 7"},
			{Word: "http://", Doc: "a cluster of yours by the URLs of its members, also https://; only keys under the run's " +
				"prefix are touched"},
		},
		URLs: urls, Default: "auto", PasswordEnv: passwordEnv,
		Survey: survey, ErrorKind: errorKind, Open: stores.Opener(Open),
	})
}

// Store is one open etcd.
type Store struct {
	common
	self *leases.Self

	endpoints      []string // URLs without user and password
	user, password string
	tls            *tls.Config
	admin          *clientv3.Client
}

var _ stores.Keeper = (*Store)(nil)

// common has the methods that stores of every kind share.
type common = leases.Common

// Open opens the etcd that spec names: "auto", "process", "process:members=3" or URLs. auto is process
// if etcd is found on this machine, and otherwise an [stores.AbsentError].
//
// Errors are of one line, say how to go on, and hold no password.
func Open(ctx context.Context, spec string, options stores.Options) (*Store, error) {
	server.RemoveLeftovers(ctx, options.Dir)
	members, started := cluster.Size(strings.Replace(spec, "auto", "process", 1))
	switch {
	case started:
		bin, err := find()
		if err != nil {
			return nil, cluster.Missing(spec, err)
		}
		return server.Launch(bin, 0, func(port int) (*Store, error) { return start(ctx, bin, members, port, options) })
	case strings.HasPrefix(spec, "http://"), strings.HasPrefix(spec, "https://"):
		return openURL(ctx, spec)
	}
	return nil, stores.Refuse(driverName, spec)
}

// Admin is a client for the harness' own use. It is not metered, and is closed
// with e.
func (e *Store) Admin() *clientv3.Client { return e.admin }

// Close ends the admin client and, if the server was started here, the server
// and its directory. On another server it tries again to remove what could not be
// removed. Only the first call does anything; all return its error.
func (e *Store) Close() error {
	return e.self.End(func() error {
		if e.admin == nil {
			return nil
		}
		return e.admin.Close()
	})
}

func newStore(own server.Server, about stores.Info) *Store {
	store := &Store{self: &leases.Self{Kind: driverName, About: about, Own: own}}
	store.common = store.self.Common()
	store.self.Remove = store.remove
	store.self.Usage = store.Usage
	store.self.Reconnect = store.reconnect
	return store
}
