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

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/consensus"
)

// TierZooKeeper is the tier that decides.
const TierZooKeeper quota.Tier = "zookeeper"

func init() { strategies.BuildIn(consensus.ZooKeeperCounter, open) }

// counter is one instance of zookeeper-counter.
type counter struct {
	zk    *zk.Conn
	clock quota.Clock
	root  string // the node that all are below
	acl   []zk.ACL
	sync  bool
	// retries are writes that found another version than the one read.
	retries, successes strategies.Tally
}

var (
	_ strategies.Refunder    = (*counter)(nil)
	_ strategies.Viewer      = (*counter)(nil)
	_ strategies.Provisioner = (*counter)(nil)
	_ strategies.Meter       = (*counter)(nil)
)

func open(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	conn, ok := env.Clients[string(consensus.NeedZooKeeper)].(*zk.Conn)
	if !ok {
		return nil, errors.New("zookeeper-counter needs ZooKeeper")
	}
	c := &counter{zk: conn, clock: env.Clock, root: rootOf(env.Prefix), sync: env.Options.Bool("sync")}
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
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// version is a counter as it was read.
type version struct {
	units   int64
	version int32
	known   bool
}

// path of a subject's node in one window. Names are escaped, so that none holds a
// slash or a colon of its own.
func (c *counter) path(s quota.Subject, p *quota.Policy, index int64) string {
	return c.root + "/" + url.QueryEscape(p.Name) + ":" + url.QueryEscape(p.Window.Label(index)) + ":" + url.QueryEscape(string(s))
}

// Take implements [strategies.Strategy].
func (c *counter) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := c.clock.Now()
	span := req.Policy.Window.At(now)
	d := quota.Decision{Tier: TierZooKeeper}
	units, changed, err := c.change(ctx, c.path(req.Subject, req.Policy, span.Index), func(used int64) (int64, bool) {
		return used + req.Units, req.Units <= req.Policy.Limit-used
	})
	if err != nil {
		return quota.Decision{}, fmt.Errorf("charging %s: %w", req.Subject, err)
	}
	d.Remaining = max(req.Policy.Limit-units, 0)
	if changed {
		d.Admitted = true
		d.Reservation = quota.Reservation{Request: req, Window: span.Index}
	} else if req.Policy.Window.Kind.Tumbling() {
		d.RetryAfter = span.End.Sub(now)
	}
	return d, nil
}

// Refund subtracts the reserved units from the window that was charged. It
// remembers nothing: a reservation that is refunded twice gives its units back
// twice.
func (c *counter) Refund(ctx context.Context, r quota.Reservation) error {
	req := r.Request
	if req.Policy == nil {
		return errors.New("refund of a reservation that no admitted request made")
	}
	_, _, err := c.change(ctx, c.path(req.Subject, req.Policy, r.Window), func(used int64) (int64, bool) {
		return max(used-req.Units, 0), used > 0
	})
	if err != nil {
		return fmt.Errorf("refunding %s: %w", req.Subject, err)
	}
	return nil
}

// change applies f to a counter, again and again until no other caller comes in
// between, or until f turns the value down. It returns the counter at its end.
func (c *counter) change(
	ctx context.Context, path string, f func(used int64) (units int64, ok bool),
) (units int64, changed bool, err error) {
	if c.sync {
		if _, err := ask(ctx, func() (string, error) { return c.zk.Sync(c.root) }); err != nil {
			return 0, false, err
		}
	}
	for {
		at, err := c.read(ctx, path)
		if err != nil {
			return 0, false, err
		}
		units, ok := f(at.units)
		if !ok {
			return at.units, false, nil
		}
		switch err := c.write(ctx, path, at, units); {
		case err == nil:
			c.successes.Add(1)
			return units, true, nil
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode) && at.known:
			c.retries.Add(1)
		default:
			return 0, false, err
		}
	}
}

// node is what a read returns.
type node struct {
	data []byte
	stat *zk.Stat
}

func (c *counter) read(ctx context.Context, path string) (version, error) {
	n, err := ask(ctx, func() (n node, err error) {
		n.data, n.stat, err = c.zk.Get(path)
		return n, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return version{}, nil
	case err != nil:
		return version{}, err
	}
	units, err := strconv.ParseInt(string(n.data), 10, 64)
	if err != nil {
		return version{}, fmt.Errorf("node %s holds no number", path)
	}
	return version{units, n.stat.Version, true}, nil
}

// write sets a counter that is at the version that was read.
func (c *counter) write(ctx context.Context, path string, at version, units int64) error {
	data := strconv.AppendInt(nil, units, 10)
	_, err := ask(ctx, func() (struct{}, error) {
		var err error
		if at.known {
			_, err = c.zk.Set(path, data, at.version)
		} else {
			_, err = c.zk.Create(path, data, zk.FlagPersistent, c.acl)
		}
		return struct{}{}, err
	})
	return err
}

// Used implements [strategies.Viewer].
func (c *counter) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	at, err := c.read(ctx, c.path(s, p, p.Window.At(c.clock.Now()).Index))
	if err != nil {
		return nil, fmt.Errorf("reading what %s has used: %w", s, err)
	}
	return []quota.Reading{{Tier: TierZooKeeper, Units: at.units, Known: at.known}}, nil
}

// setUpAtOnce is how many nodes are written at the same time, so that the server
// syncs its log for many of them at once.
const setUpAtOnce = 64

// Provision writes the nodes of the window in force. One that exists is replaced.
func (c *counter) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	index := p.Window.At(c.clock.Now()).Index
	for _, grant := range grants {
		if grant.Limit != p.Limit {
			return fmt.Errorf("limit %d for %s: all subjects share the limit of policy %s, %d", grant.Limit, grant.Subject, p.Name, p.Limit)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(setUpAtOnce)
	for _, grant := range grants {
		g.Go(func() error { return c.set(ctx, c.path(grant.Subject, p, index), grant.Used) })
	}
	return g.Wait()
}

// set gives a counter a value, whatever its version is.
func (c *counter) set(ctx context.Context, path string, units int64) error {
	err := c.write(ctx, path, version{version: -1, known: true}, units)
	if errors.Is(err, zk.ErrNoNode) {
		if units == 0 {
			return nil
		}
		err = c.write(ctx, path, version{}, units)
	}
	if err != nil {
		return fmt.Errorf("setting %s: %w", path, err)
	}
	return nil
}

// Measures implements [strategies.Meter].
func (c *counter) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "retries", Unit: "writes", Value: c.retries.Load()},
		{Name: "successes", Unit: "writes", Value: c.successes.Load()},
	}
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (c *counter) Close(context.Context) error { return nil }
