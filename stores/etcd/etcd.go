package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/keep"
	"github.com/quotabench/quotabench/stores/internal/server"
)

const urls = "http:// or https://, further members after commas"

var driver = stores.Driver{
	Name: "etcd", Title: "etcd",
	Choices: []stores.Choice{
		{Word: "auto", Doc: "a process if etcd is installed, else none; the default"},
		{Word: "process", Doc: "etcd of this machine, one member, started as a child and removed afterwards"},
		{Word: "http://", Doc: "a cluster of yours by the URLs of its members, also https://; only keys under the run's prefix are touched"},
	},
	URLs: urls, Default: "auto", PasswordEnv: passwordEnv,
	Survey: survey, ErrorKind: errorKind,
}

// passwordEnv is etcdctl's own.
const passwordEnv = "ETCDCTL_PASSWORD"

func init() {
	d := driver
	d.Open = stores.Opener(Open)
	stores.Register(d)
}

// Store is one open etcd.
type Store struct {
	endpoints      []string // URLs without user and password
	user, password string
	tls            *tls.Config
	info           stores.Info
	own            *server.Child // nil where the server was not started here
	admin          *clientv3.Client
	owed           server.Owed
	keeping        *keep.Keeping // nil where the server was started here

	closing sync.Once
	closed  error
}

var _ stores.Store = (*Store)(nil)

// Open opens the etcd that spec names: "auto", "process" or URLs. auto is process
// where etcd is found on this machine, and else an [stores.AbsentError].
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
	case strings.HasPrefix(spec, "http://"), strings.HasPrefix(spec, "https://"):
		return openURL(ctx, spec)
	}
	return nil, driver.Refuse(spec)
}

// Driver is "etcd".
func (e *Store) Driver() string { return driver.Name }

// Info describes the server.
func (e *Store) Info() stores.Info { return e.info }

// Owned reports whether the server was started here, for this process alone.
func (e *Store) Owned() bool { return e.own != nil }

// PID is the server's process where it is a child of ours, and otherwise 0.
func (e *Store) PID() int { return e.own.PID() }

// Admin is a client for the harness' own use. It is not metered, and is closed
// with e.
func (e *Store) Admin() *clientv3.Client { return e.admin }

// Close ends the admin client and, where the server was started here, the server
// and its directory. On another server it tries again to remove what could not be
// removed. Only the first call does anything; all return its error.
func (e *Store) Close() error {
	e.closing.Do(func() {
		errs := []error{e.keeping.Close(&e.owed, e.wipeAnew)}
		if e.admin != nil {
			errs = append(errs, e.admin.Close())
		}
		if e.own != nil {
			errs = append(errs, e.own.Close())
		}
		if err := errors.Join(errs...); err != nil {
			e.closed = fmt.Errorf("close etcd: %w", err)
		}
	})
	return e.closed
}
