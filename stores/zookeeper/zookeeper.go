package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/internal/cancel"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/keep"
	"github.com/quotabench/quotabench/stores/internal/server"
)

const urls = "zk://, further servers after commas"

var driver = stores.Driver{
	Name: "zookeeper", Title: "ZooKeeper",
	Choices: []stores.Choice{
		{Word: "auto", Doc: "a process if ZooKeeper and Java are installed, else none; the default"},
		{Word: "process", Doc: "ZooKeeper of this machine, one server, started as a child and removed afterwards"},
		{Word: "zk://", Doc: "servers of yours by URL; only nodes of the run's are touched"},
	},
	URLs: urls, Default: "auto", PasswordEnv: passwordEnv,
	Survey: survey, ErrorKind: errorKind,
}

const passwordEnv = "ZOOKEEPER_PASSWORD"

func init() {
	d := driver
	d.Open = stores.Opener(Open)
	stores.Register(d)
}

// Store is one open ZooKeeper.
type Store struct {
	servers        []string // host:port
	user, password string
	info           stores.Info
	own            *server.Child // nil where the server was not started here
	admin          *zk.Conn
	owed           server.Owed
	keeping        *keep.Keeping // nil where the server was started here

	closing sync.Once
	closed  error
}

var _ stores.Store = (*Store)(nil)

// Open opens the ZooKeeper that spec names: "auto", "process" or URLs. auto is
// process where ZooKeeper is found on this machine, and else an
// [stores.AbsentError].
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
	case strings.HasPrefix(spec, "zk://"):
		return openURL(ctx, spec)
	}
	return nil, driver.Refuse(spec)
}

// Driver is "zookeeper".
func (z *Store) Driver() string { return driver.Name }

// Info describes the server.
func (z *Store) Info() stores.Info { return z.info }

// Owned reports whether the server was started here, for this process alone.
func (z *Store) Owned() bool { return z.own != nil }

// PID is the server's process where it is a child of ours, and otherwise 0.
func (z *Store) PID() int { return z.own.PID() }

// Admin is a client for the harness' own use. It is not metered, and is closed
// with z.
func (z *Store) Admin() *zk.Conn { return z.admin }

// Close ends the admin client and, where the server was started here, the server
// and its directory. On another server it tries again to remove what could not be
// removed. Only the first call does anything; all return its error.
func (z *Store) Close() error {
	z.closing.Do(func() {
		errs := []error{z.keeping.Close(&z.owed, z.wipeAnew)}
		if z.admin != nil {
			z.admin.Close()
		}
		if z.own != nil {
			errs = append(errs, z.own.Close())
		}
		if err := errors.Join(errs...); err != nil {
			z.closed = fmt.Errorf("close zookeeper: %w", err)
		}
	})
	return z.closed
}

// Prepare takes the lease on scope, and counts the nodes that exist under it already.
// ZooKeeper needs no room made: a strategy makes the node that it keeps all below.
func (z *Store) Prepare(ctx context.Context, scope stores.Scope) (strays int64, err error) {
	_ = z.owed.Pay(ctx, z.wipe) // what still fails is tried again later
	if err := z.Lease(ctx, scope); err != nil {
		return 0, err
	}
	u, err := z.Usage(ctx, scope)
	return u.Keys, err
}

// Usage counts the nodes below those of the scope. None of them ever expires.
func (z *Store) Usage(ctx context.Context, scope stores.Scope) (stores.Usage, error) {
	return cancel.Call(ctx, func() (stores.Usage, error) { return z.usage(ctx, scope) })
}

func (z *Store) usage(ctx context.Context, scope stores.Scope) (u stores.Usage, err error) {
	roots, err := z.roots(ctx, scope)
	if err != nil {
		return u, err
	}
	for _, root := range roots {
		children, _, err := z.admin.Children(root)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return u, fmt.Errorf("list the nodes below %s: %w", root, err)
		}
		u.Keys += int64(len(children))
		u.WithoutTTL += int64(len(children))
	}
	return u, nil
}

// batch is how many nodes are removed at a time.
const batch = 500

// Wipe removes the nodes of the scope with all below them, and no others. What it cannot
// remove is tried again by the next Prepare and by Close.
func (z *Store) Wipe(ctx context.Context, scope stores.Scope) error {
	return z.owed.Note(string(scope), z.wipe(ctx, string(scope)))
}

func (z *Store) wipe(ctx context.Context, name string) error {
	scope := stores.Scope(name)
	if _, err := (board{z}).Clear(ctx, scope); err != nil {
		return err
	}
	return z.keeping.Release(ctx, scope)
}

// wipeAnew is wipe by a client of its own: one that knows of more than the server, which
// came back empty, is turned away.
func (z *Store) wipeAnew(ctx context.Context, name string) error {
	c, err := z.client(ctx, stores.ConnOptions{})
	if err != nil {
		return err
	}
	z.admin.Close()
	z.admin = c
	return z.wipe(ctx, name)
}

// remove removes a node and those below it, and counts them.
func (z *Store) remove(ctx context.Context, node string) (removed int64, err error) {
	children, _, err := z.admin.Children(node)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("list the nodes below %s: %w", node, err)
	}
	for len(children) > 0 {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		n := min(batch, len(children))
		ops := make([]any, n)
		for i, c := range children[:n] {
			ops[i] = &zk.DeleteRequest{Path: node + "/" + c, Version: -1}
		}
		children = children[n:]
		if _, err := z.admin.Multi(ops...); err != nil {
			return removed, fmt.Errorf("remove %d nodes below %s: %w", n, node, err)
		}
		removed += int64(n)
	}
	if err := z.admin.Delete(node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return removed, fmt.Errorf("remove the node %s: %w", node, err)
	}
	return removed + 1, nil
}

// roots are the nodes of the root that belong to a scope.
func (z *Store) roots(ctx context.Context, scope stores.Scope) (out []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	names, _, err := z.admin.Children("/")
	if err != nil {
		return nil, fmt.Errorf("list the nodes of %s: %w", scope, err)
	}
	for _, name := range names {
		if name == scope.Schema() || strings.HasPrefix(name, scope.Schema()+"_") {
			out = append(out, "/"+name)
		}
	}
	return out, nil
}

// Stats is what can be told of a child of ours. Others keep theirs to themselves.
func (z *Store) Stats(context.Context) (stores.Stats, error) {
	if z.own == nil {
		return stores.Stats{}, nil
	}
	s := stores.Stats{Known: true, Incarnation: strconv.Itoa(z.PID())}
	s.CPU, _ = server.CPUOfTree(z.PID())
	return s, nil
}
