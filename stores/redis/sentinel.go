package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/stores"
)

// masterName is the name by which sentinels that are started here know the master.
const masterName = "quotabench"

// Times of these sentinels, in milliseconds: how long a master may not answer, and how long they let a replica take
// over before they try again.
const (
	downAfter       = 1000
	failoverTimeout = 5000
)

// startSentinels starts a master with replicas, and sentinels that let a replica take its place when it dies. Clients
// follow them.
func startSentinels(ctx context.Context, s shape, options stores.Options,
	one func(stores.Options) (*Store, error)) (*Store, error) {
	replicas := max(1, s.replicas)
	master, err := startReplicated(ctx, replicas, options, one)
	if err != nil {
		return nil, err
	}
	store := newStore(nil, master.self.About)
	store.self.About.Detail = strings.Replace(store.self.About.Detail, "child process", "child processes", 1) +
		", and watched by " + count(s.sentinels, "sentinel")
	store.nodes = append([]*Store{master}, master.nodes...)
	master.nodes = nil
	opt := &goredis.FailoverOptions{MasterName: masterName, Password: master.base.Password,
		SentinelPassword: master.base.Password}
	err = store.watch(ctx, s.sentinels, options)
	if err == nil {
		for _, n := range store.nodes[1+replicas:] {
			opt.SentinelAddrs = append(opt.SentinelAddrs, n.base.Addr)
		}
		store.self.About.Addr = strings.Join(opt.SentinelAddrs, ",")
		store.useSentinel(opt)
		store.watched = store.nodes[:1+replicas]
		store.sentinels = store.nodes[1+replicas:]
		store.nodes = nil
		store.options = options
		store.own()
		err = store.connectAll(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start sentinels: %w", err), store.Close())
	}
	return store, nil
}

// watch starts sentinels of the first node, and waits until they know each other and the replicas, which are the
// others.
func (r *Store) watch(ctx context.Context, sentinels int, options stores.Options) error {
	bin, err := find()
	if err != nil {
		return err
	}
	master := r.nodes[0]
	known := len(r.nodes)
	host, port, err := net.SplitHostPort(master.base.Addr)
	if err != nil {
		return err
	}
	password := master.base.Password
	settings := []string{
		fmt.Sprintf("sentinel sentinel-pass %s", password),
		fmt.Sprintf("sentinel monitor %s %s %s %d", masterName, host, port, sentinels/2+1),
		fmt.Sprintf("sentinel auth-pass %s %s", masterName, password),
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", masterName, downAfter),
		fmt.Sprintf("sentinel failover-timeout %s %d", masterName, failoverTimeout),
	}
	text := strings.Join(settings, "\n") + "\n"
	options.Settings = map[string]string{"requirepass": password}
	for range sentinels {
		n, err := server.Launch(bin, 0, func(port int) (*Store, error) { return start(ctx, bin, port, options, text) })
		if err != nil {
			return err
		}
		r.nodes = append(r.nodes, n)
	}
	return r.agree(ctx, r.nodes[known:], known-1)
}

// agree waits until sentinels know each other, and see a master with all of its replicas.
func (r *Store) agree(ctx context.Context, sentinels []*Store, replicas int) error {
	for _, n := range sentinels {
		err := poll(ctx, "the sentinels to find each other", func() (bool, error) {
			mapStringStringCmd := goredis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", masterName)
			all := goredis.NewMapStringStringSliceCmd(ctx, "SENTINEL", "REPLICAS", masterName)
			err := errors.Join(n.admin.Process(ctx, mapStringStringCmd), n.admin.Process(ctx, all))
			lost := slices.ContainsFunc(all.Val(), func(f map[string]string) bool { return f["flags"] != "slave" })
			return !lost && len(all.Val()) == replicas &&
				mapStringStringCmd.Val()["num-other-sentinels"] == fmt.Sprint(len(sentinels)-1) &&
				mapStringStringCmd.Val()["flags"] == "master", err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// own makes the servers that sentinels watch, and these, the store's own. The master is the first.
func (r *Store) own() {
	var all server.Group
	for _, n := range slices.Concat(r.watched, r.sentinels) {
		all = append(all, n.self.Own)
	}
	r.self.Own = all
}

// master is the server that all sentinels name.
func (r *Store) master(ctx context.Context) (store *Store, err error) {
	for i, s := range r.sentinels {
		at := goredis.NewStringSliceCmd(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
		if err := s.admin.Process(ctx, at); err != nil {
			return nil, fmt.Errorf("ask a sentinel for the master: %w", err)
		}
		n := slices.IndexFunc(r.watched, func(w *Store) bool { return w.base.Addr == strings.Join(at.Val(), ":") })
		if n < 0 || i > 0 && store != r.watched[n] {
			return nil, errors.New("the sentinels do not agree on a master")
		}
		store = r.watched[n]
	}
	return store, nil
}

// agreed is the master, once all sentinels name one.
func (r *Store) agreed(ctx context.Context) (store *Store, err error) {
	err = poll(ctx, "the sentinels to agree on a master", func() (bool, error) {
		store, err = r.master(ctx)
		return err == nil, err
	})
	return store, err
}

// regroup starts a server again that has ended, at its address, and has all others follow the master. It does so again
// if the sentinels name another master meanwhile.
func (r *Store) regroup(ctx context.Context) error {
	for {
		master, err := r.agreed(ctx)
		if err == nil {
			err = r.gather(ctx, master)
		}
		if now, namedErr := r.agreed(ctx); now == master || namedErr != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (r *Store) gather(ctx context.Context, master *Store) (err error) {
	defer r.own()
	for i, n := range r.watched {
		if n.self.Own.Ended() {
			n, err = r.again(ctx, n)
			if err != nil {
				return fmt.Errorf("start a replica: %w", err)
			}
			r.watched[i] = n
		}
		if n == master {
			continue
		}
		if err := n.follow(ctx, master); err != nil {
			return err
		}
	}
	i := slices.Index(r.watched, master)
	r.watched[0], r.watched[i] = master, r.watched[0]
	master.self.Replica = false
	return r.agree(ctx, r.sentinels, len(r.watched)-1)
}

// again starts a server at the address of one that has ended.
func (r *Store) again(ctx context.Context, n *Store) (*Store, error) {
	port, err := strconv.Atoi(n.base.Addr[strings.LastIndexByte(n.base.Addr, ':')+1:])
	bin, findErr := find()
	if err := errors.Join(n.Close(), err, findErr); err != nil {
		return nil, err
	}
	return start(ctx, bin, port, r.options, "")
}
