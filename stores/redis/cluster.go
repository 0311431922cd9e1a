package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/stores"
)

// slots of a Redis Cluster.
const slots = 16384

// startCluster starts masters, and so many replicas of each, and makes a cluster of them: each master has its share of
// the slots.
func startCluster(ctx context.Context, masters, replicas int, one func() (*Store, error)) (*Store, error) {
	store := newStore(nil, stores.Info{Kind: stores.KindProcess})
	fail := func(err error) (*Store, error) {
		return nil, errors.Join(fmt.Errorf("start a Redis Cluster: %w", err), store.Close())
	}
	for range masters * (1 + replicas) {
		n, err := one()
		if err != nil {
			return fail(err)
		}
		store.nodes = append(store.nodes, n)
	}
	if err := meet(ctx, store.nodes, masters); err != nil {
		return fail(err)
	}
	for i, n := range store.nodes[masters:] {
		master := store.nodes[i%masters]
		err := n.followBy(ctx, master, func() error {
			id, err := master.admin.Do(ctx, "CLUSTER", "MYID").Text()
			return errors.Join(err, n.admin.ClusterReplicate(ctx, id).Err())
		})
		if err != nil {
			return fail(err)
		}
	}
	opt := &goredis.ClusterOptions{Password: store.nodes[0].base.Password}
	var addrs []string
	for _, n := range store.nodes[:masters] {
		addrs = append(addrs, n.base.Addr)
	}
	opt.Addrs = addrs
	store.self.About.Addr = strings.Join(addrs, ",")
	each := strings.Replace(store.nodes[0].self.About.Detail, "child process", "child processes", 1)
	store.self.About.Detail = fmt.Sprintf("a cluster of %d masters; %s", masters, each)
	if replicas > 0 {
		store.self.About.Detail += "; each is followed by " + count(replicas, "replica")
	}
	store.useCluster(opt)
	if err := errors.Join(store.adopt(), store.connectAll(ctx)); err != nil {
		return fail(err)
	}
	return store, nil
}

// meet makes a cluster of nodes that know nothing of each other. The first ones are given the slots.
func meet(ctx context.Context, nodes []*Store, masters int) error {
	for i, n := range nodes {
		if i < masters {
			from := i * slots / masters
			to := (i+1)*slots/masters - 1
			if err := n.admin.ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
				return fmt.Errorf("give slots to %s: %w", n.base.Addr, err)
			}
		}
		if err := n.admin.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return fmt.Errorf("number %s: %w", n.base.Addr, err)
		}
		host, port, err := net.SplitHostPort(n.base.Addr)
		if err != nil {
			return err
		}
		if err := nodes[0].admin.ClusterMeet(ctx, host, port).Err(); err != nil {
			return fmt.Errorf("introduce %s: %w", n.base.Addr, err)
		}
	}
	for _, n := range nodes {
		err := poll(ctx, "the cluster", func() (bool, error) {
			text, err := n.admin.ClusterInfo(ctx).Result()
			return strings.Contains(text, "cluster_state:ok") &&
				strings.Contains(text, fmt.Sprintf("cluster_known_nodes:%d\r", len(nodes))), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// openClusterURL opens a cluster that is running: a URL, and further ones of which
// the address counts.
func openClusterURL(ctx context.Context, list string, options stores.Options) (*Store, error) {
	first, others, err := several("cluster", list)
	if err != nil {
		return nil, err
	}
	opt, err := goredis.ParseClusterURL(first)
	if err != nil {
		return nil, notAURL("cluster", err, first)
	}
	opt.Addrs = append(opt.Addrs, others...)
	opt.Password = passwordFromEnv(opt.Password)
	store := newStore(nil, stores.Info{Kind: stores.KindURL,
		Detail: "a cluster that was already running; it may serve others too"})
	store.options = options
	store.useCluster(opt)
	return store, store.reachURL(ctx, opt.Addrs, opt.Password)
}

// openSentinelURL opens the master that sentinels name, wherever it is: a client
// follows it when another one takes its place.
func openSentinelURL(ctx context.Context, list string, options stores.Options) (*Store, error) {
	first, others, err := several("sentinel", list)
	if err != nil {
		return nil, err
	}
	opt, err := goredis.ParseFailoverURL(first)
	if err != nil {
		return nil, notAURL("sentinel", err, first)
	}
	if opt.MasterName == "" {
		return nil, stores.WrongSpec(driverName, "sentinel: the URL does not name the master: add ?master_name=NAME to it, "+
			"e.g. sentinel:redis://host:26379?master_name=mymaster")
	}
	opt.SentinelAddrs = append(opt.SentinelAddrs, others...)
	opt.Password = passwordFromEnv(opt.Password)
	store := newStore(nil, stores.Info{
		Kind: stores.KindURL, Detail: "the master " + opt.MasterName +
			" of sentinels; it was already running and may serve others too",
	})
	store.options = options
	store.useSentinel(opt)
	return store, store.reachURL(ctx, opt.SentinelAddrs, opt.Password)
}

// several reads URL[,URL...]: the first URL, and the addresses of the others.
func several(what, list string) (first string, others []string, err error) {
	urls := strings.Split(list, ",")
	for i, text := range urls {
		if !isURL(text) || strings.HasPrefix(text, "unix:") {
			return "", nil, stores.WrongSpec(driverName, "%s: number %d is no URL: give %s:redis://host:port, and "+
				"further URLs behind commas", what, i+1, what)
		}
		if i == 0 {
			continue
		}
		opt, err := goredis.ParseURL(text)
		if err != nil {
			return "", nil, notAURL(what, err, text)
		}
		others = append(others, opt.Addr)
	}
	return urls[0], others, nil
}

// reachURL connects to servers that are running, or says why that fails.
func (r *Store) reachURL(ctx context.Context, addrs []string, password string) error {
	slices.Sort(addrs)
	all := strings.Join(slices.Compact(addrs), ",")
	r.self.About.Addr = all
	ctx, cancel := context.WithTimeout(ctx, server.ReachTimeout)
	defer cancel()
	err := r.connectAll(ctx)
	if err == nil {
		err = r.usable(ctx)
		if err == nil {
			return nil
		}
		err = errors.Join(err, r.admin.Close())
	}
	if text := err.Error(); strings.Contains(text, "cluster support disabled") {
		return fmt.Errorf("redis at %s is no cluster: leave cluster: out (%s)", all, format.OneLine(text))
	}
	return explain(err, &goredis.Options{Addr: all, Password: password})
}

// notAURL is the error of a list of URLs that a parser refused.
func notAURL(what string, err error, text string) error {
	var password string
	if u, uerr := url.Parse(text); uerr == nil {
		password, _ = u.User.Password()
	} else { // what url.Parse complains about may be a piece of a password
		return stores.WrongSpec(driverName, "%s: this is not a valid URL: write redis://user:password@host:port "+
			"and %%-encode what is special in a password", what)
	}
	said := server.Redact(strings.TrimPrefix(err.Error(), "redis: "), text, password, url.QueryEscape(password))
	return stores.WrongSpec(driverName, "%s: this is not a valid URL: %s", what, said)
}

// useCluster makes clients of a cluster.
func (r *Store) useCluster(base *goredis.ClusterOptions) {
	r.dial = func(options ClientOptions) goredis.UniversalClient {
		opt := *base // all that is shared is not written to
		opt.PoolSize, opt.PipelinePoolSize, opt.MaxRetries = options.Pool, -1, retries(options)
		opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, maxIdle(options), 0
		// A redirection repeats a command, as does what else the client takes for a
		// passing fault. Slots move in a run only if that is asked for.
		opt.MaxRedirects = retries(options)
		if options.Redirected {
			opt.MaxRedirects = max(options.Retries, 3) // as by itself
		}
		opt.DisableIdentity = true
		opt.ContextTimeoutEnabled = true
		opt.ConnMaxIdleTime = -1
		opt.DialerRetries = 1
		opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		if options.Timeout > 0 {
			opt.DialTimeout = options.Timeout
			opt.ReadTimeout = options.Timeout
			opt.WriteTimeout = options.Timeout
		}
		opt.Dialer = dialer(options, base.Dialer, opt.DialTimeout, opt.TLSConfig)
		return goredis.NewClusterClient(&opt)
	}
}

// useSentinel makes clients of the master that sentinels name.
func (r *Store) useSentinel(base *goredis.FailoverOptions) {
	r.dial = func(options ClientOptions) goredis.UniversalClient {
		opt := *base
		opt.PoolSize, opt.PipelinePoolSize, opt.MaxRetries = options.Pool, -1, retries(options)
		opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, maxIdle(options), 0
		opt.DisableIdentity = true
		opt.ContextTimeoutEnabled = true
		opt.ConnMaxIdleTime = -1
		opt.DialerRetries = 1
		if options.Timeout > 0 {
			opt.DialTimeout = options.Timeout
			opt.ReadTimeout = options.Timeout
			opt.WriteTimeout = options.Timeout
		}
		opt.Dialer = dialer(options, base.Dialer, opt.DialTimeout, opt.TLSConfig)
		return goredis.NewFailoverClient(&opt)
	}
}

// connectAll makes the admin client of what is not a single server, and asks who it
// is.
func (r *Store) connectAll(ctx context.Context) error {
	r.admin = r.dial(ClientOptions{Pool: adminPool})
	err := r.describe(ctx)
	if err == nil {
		if client, ok := r.admin.(*goredis.ClusterClient); ok {
			err = client.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error {
				return c.ClusterInfo(ctx).Err()
			})
		}
	}
	if err != nil {
		err = errors.Join(err, r.admin.Close())
		r.admin = nil
	}
	return err
}

// connectSeveral opens a client of what is not a single server, and all connections
// of its pools: a cluster has one for each server.
func (r *Store) connectSeveral(ctx context.Context, options stores.ConnOptions) (stores.Conn, error) {
	client := r.dial(options)
	var err error
	switch c := client.(type) {
	case *goredis.ClusterClient:
		err = c.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error {
			return establish(ctx, c, first(options))
		})
	case *goredis.Client:
		err = establish(ctx, c, first(options))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to redis: %w", err), client.Close())
	}
	return conn{client, client, false}, nil
}
