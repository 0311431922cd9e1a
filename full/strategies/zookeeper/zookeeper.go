// Package zookeeper is the code of zookeeper-counter. Programs get it by package
// full.
package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/quotabench/quotabench/full/internal/cas"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/consensus"
)

// TierZooKeeper is the tier that decides.
const TierZooKeeper quota.Tier = "zookeeper"

func init() { strategies.BuildIn(codes.ZooKeeperCounter, open) }

// counter is one instance of zookeeper-counter.
type counter struct {
	cas.Counter
	zk   *zk.Conn
	root string // the node that all are below
	acl  []zk.ACL
	sync bool
}

var _ strategies.Provisioner = (*counter)(nil)

func open(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	conn, ok := env.Clients[string(consensus.NeedZooKeeper)].(*zk.Conn)
	if !ok {
		return nil, errors.New("zookeeper-counter needs ZooKeeper")
	}
	c := &counter{zk: conn, root: rootOf(env.Prefix), sync: env.Options.Bool("sync")}
	c.Counter = cas.Counter{Store: c, Clock: env.Clock, Tier: TierZooKeeper, Writes: "writes"}
	// Nodes are for those alone who have logged in as we did; if nobody does, for
	// all.
	c.acl = zk.AuthACL(zk.PermAll)
	create := func() (string, error) { return conn.Create(c.root, nil, zk.FlagPersistent, c.acl) }
	_, err := ask(ctx, create)
	if errors.Is(err, zk.ErrInvalidACL) {
		c.acl = zk.WorldACL(zk.PermAll)
		_, err = ask(ctx, create)
	}
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, fmt.Errorf("making the node %s: %w", c.root, err)
	}
	return c, nil
}

// rootOf is a node's name that a prefix of keys stands for: letters, digits and
// underscores.
func rootOf(prefix string) string {
	return "/" + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, prefix)
}

// Key implements [cas.Store]: the path of a node. Names are escaped, so that none
// holds a slash or a colon of its own.
func (c *counter) Key(subject quota.Subject, policy *quota.Policy, index int64) string {
	return c.root + "/" + url.QueryEscape(policy.Name) + ":" + url.QueryEscape(policy.Window.Label(index)) + ":" +
		url.QueryEscape(string(subject))
}

// Prepare implements [cas.Store].
func (c *counter) Prepare(ctx context.Context) error {
	if !c.sync {
		return nil
	}
	_, err := ask(ctx, func() (string, error) { return c.zk.Sync(c.root) })
	return err
}

// node is what a read returns.
type node struct {
	data []byte
	stat *zk.Stat
}

// Read implements [cas.Store].
func (c *counter) Read(ctx context.Context, path string) (cas.Version, error) {
	n, err := ask(ctx, func() (n node, err error) {
		n.data, n.stat, err = c.zk.Get(path)
		return n, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return cas.Version{}, nil
	case err != nil:
		return cas.Version{}, err
	}
	units, err := strconv.ParseInt(string(n.data), 10, 64)
	if err != nil {
		return cas.Version{}, fmt.Errorf("node %s holds no number", path)
	}
	return cas.Version{Units: units, Number: int64(n.stat.Version), Known: true}, nil
}

// Swap implements [cas.Store].
func (c *counter) Swap(
	ctx context.Context, path string, _ quota.Span, at cas.Version, units int64,
) (now cas.Version, done bool, err error) {
	err = c.write(ctx, path, at, units)
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) && at.Known {
		now, err = c.Read(ctx, path)
		return now, false, err
	}
	return now, err == nil, err
}

// write sets a counter that is at the version that was read.
func (c *counter) write(ctx context.Context, path string, at cas.Version, units int64) error {
	data := strconv.AppendInt(nil, units, 10)
	_, err := ask(ctx, func() (struct{}, error) {
		var err error
		if at.Known {
			_, err = c.zk.Set(path, data, int32(at.Number))
		} else {
			_, err = c.zk.Create(path, data, zk.FlagPersistent, c.acl)
		}
		return struct{}{}, err
	})
	return err
}

// setUpAtOnce is how many nodes are written at the same time, so that the server
// syncs its log for many of them at once.
const setUpAtOnce = 64

// Provision writes the nodes of the window in force. One that exists is replaced.
func (c *counter) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	index := policy.Window.At(c.Clock.Now()).Index
	for _, grant := range grants {
		if grant.Limit != policy.Limit {
			return fmt.Errorf("limit %d for %s: all subjects share the limit of policy %s, %d", grant.Limit, grant.Subject,
				policy.Name, policy.Limit)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(setUpAtOnce)
	for _, grant := range grants {
		group.Go(func() error { return c.set(ctx, c.Key(grant.Subject, policy, index), grant.Used) })
	}
	return group.Wait()
}

// set gives a counter a value, whatever its version is.
func (c *counter) set(ctx context.Context, path string, units int64) error {
	err := c.write(ctx, path, cas.Version{Number: -1, Known: true}, units)
	if errors.Is(err, zk.ErrNoNode) {
		if units == 0 {
			return nil
		}
		err = c.write(ctx, path, cas.Version{}, units)
	}
	if err != nil {
		return fmt.Errorf("setting %s: %w", path, err)
	}
	return nil
}

// ask makes a call of a client that knows no contexts, and gives up with its caller.
func ask[T any](ctx context.Context, call func() (T, error)) (v T, err error) {
	if err := ctx.Err(); err != nil {
		return v, err
	}
	if ctx.Done() == nil {
		return call()
	}
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := call()
		done <- result{v, err}
	}()
	select {
	case result := <-done:
		return result.v, result.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}
