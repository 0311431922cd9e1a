package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/cancel"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

const urls = "zk://, further servers after commas"

// driverName is what stores of this kind are named after.
const driverName = "zookeeper"

const passwordEnv = "ZOOKEEPER_PASSWORD"

func init() {
	stores.Register(stores.Driver{
		Name: driverName, Title: "ZooKeeper", Noun: "node", Clients: []string{"github.com/go-zookeeper/"},
		Choices: []stores.Choice{
			{Word: "auto", Doc: "a process if ZooKeeper and Java are installed, else none; the default"},
			{Word: "process", Doc: "ZooKeeper of this machine, one server, started as a child and removed afterwards"},
			{Word: "process:members=3", Doc: "an ensemble of so many servers, up to 7"},
			{Word: "zk://", Doc: "servers of yours by URL; only nodes of the run's are touched"},
		},
		URLs: urls, Default: "auto", PasswordEnv: passwordEnv,
		Survey: survey, ErrorKind: errorKind, Open: stores.Opener(Open),
	})
}

// Store is one open ZooKeeper.
type Store struct {
	common
	self *leases.Self

	servers        []string // host:port
	user, password string
	admin          *zk.Conn
}

var _ stores.Keeper = (*Store)(nil)

// common has the methods that stores of every kind share.
type common = leases.Common

// Open opens the ZooKeeper that spec names: "auto", "process", "process:members=3" or URLs. auto is
// process if ZooKeeper is found on this machine, and otherwise an
// [stores.AbsentError].
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
	case strings.HasPrefix(spec, "zk://"):
		return openURL(ctx, spec)
	}
	return nil, stores.Refuse(driverName, spec)
}

// Admin is a client for the harness' own use. It is not metered, and is closed
// with z.
func (z *Store) Admin() *zk.Conn { return z.admin }

// Close ends the admin client and, if the server was started here, the server
// and its directory. On another server it tries again to remove what could not be
// removed. Only the first call does anything; all return its error.
func (z *Store) Close() error {
	return z.self.End(func() error {
		if z.admin != nil {
			z.admin.Close()
		}
		return nil
	})
}

func newStore(own server.Server, about stores.Info) *Store {
	store := &Store{self: &leases.Self{Kind: driverName, About: about, Own: own}}
	store.common = store.self.Common()
	store.self.Remove = store.removeAll
	store.self.Usage = store.Usage
	store.self.Reconnect = store.reconnect
	return store
}

// Usage counts the nodes below those of the scope. None of them ever expires.
func (z *Store) Usage(ctx context.Context, scope stores.Scope) (stores.Usage, error) {
	return cancel.Call(ctx, func() (stores.Usage, error) { return z.usage(ctx, scope) })
}

func (z *Store) usage(ctx context.Context, scope stores.Scope) (usage stores.Usage, err error) {
	roots, err := z.roots(ctx, scope)
	if err != nil {
		return usage, err
	}
	for _, root := range roots {
		children, _, err := z.admin.Children(root)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return usage, fmt.Errorf("list the nodes below %s: %w", root, err)
		}
		usage.Keys += int64(len(children))
		usage.WithoutTTL += int64(len(children))
	}
	return usage, nil
}

// batch is how many nodes are removed at a time.
const batch = 500

// removeAll removes the nodes of the scope with all below them, and no others.
func (z *Store) removeAll(ctx context.Context, scope stores.Scope) error {
	_, err := board{z}.Clear(ctx, scope)
	return err
}

// reconnect makes a client anew: one that knows of more than the server, which came back
// empty, is turned away.
func (z *Store) reconnect(ctx context.Context) error {
	conn, err := z.client(ctx, stores.ConnOptions{})
	if err != nil {
		return err
	}
	z.admin.Close()
	z.admin = conn
	return nil
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
	for some := range slices.Chunk(children, batch) {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		ops := make([]any, len(some))
		for i, text := range some {
			ops[i] = &zk.DeleteRequest{Path: node + "/" + text, Version: -1}
		}
		if _, err := z.admin.Multi(ops...); err != nil {
			return removed, fmt.Errorf("remove %d nodes below %s: %w", len(some), node, err)
		}
		removed += int64(len(some))
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
	if z.self.Own == nil {
		return stores.Stats{}, nil
	}
	stats := stores.Stats{Known: true, Incarnation: strconv.Itoa(z.PID())}
	for _, c := range z.self.Own.(server.Group) {
		used, _ := server.CPUOfTree(c.PID())
		stats.CPU += used
	}
	return stats, nil
}
