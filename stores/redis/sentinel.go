package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

// watched is the name by which sentinels that are started here know the master.
const watched = "quotabench"

// Times of these sentinels, in milliseconds: how long a master may not answer, and how long they let a replica take over
// before they try again.
const (
	downAfter       = 1000
	failoverTimeout = 5000
)

// startSentinels starts a master with replicas, and sentinels that let a replica take its place when it dies. Clients
// follow them.
func startSentinels(ctx context.Context, s shape, o stores.Options, one func(stores.Options) (*Store, error)) (*Store, error) {
	replicas := max(1, s.replicas)
	master, err := startReplicated(ctx, replicas, o, one)
	if err != nil {
		return nil, err
	}
	r := newStore(nil, master.self.About)
	r.self.About.Detail = strings.Replace(r.self.About.Detail, "child process", "child processes", 1) +
		", and watched by " + count(s.sentinels, "sentinel")
	r.nodes = append([]*Store{master}, master.nodes...)
	master.nodes = nil
	opt := &goredis.FailoverOptions{MasterName: watched, Password: master.base.Password, SentinelPassword: master.base.Password}
	if err = r.watch(ctx, s.sentinels, o); err == nil {
		for _, n := range r.nodes[1+replicas:] {
			opt.SentinelAddrs = append(opt.SentinelAddrs, n.base.Addr)
		}
		r.self.About.Addr = strings.Join(opt.SentinelAddrs, ",")
		r.useSentinel(opt)
		err = errors.Join(r.adopt(), r.connectAll(ctx))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start sentinels: %w", err), r.Close())
	}
	return r, nil
}

// watch starts sentinels of the first node, and waits until they know each other and the replicas, which are the others.
func (r *Store) watch(ctx context.Context, sentinels int, o stores.Options) error {
	bin, err := find()
	if err != nil {
		return err
	}
	master, known := r.nodes[0], len(r.nodes)
	host, port, err := net.SplitHostPort(master.base.Addr)
	if err != nil {
		return err
	}
	password := master.base.Password
	text := fmt.Sprintf("sentinel sentinel-pass %[2]s\nsentinel monitor %[1]s %[3]s %[4]s %[5]d\nsentinel auth-pass %[1]s %[2]s\n"+
		"sentinel down-after-milliseconds %[1]s %[6]d\nsentinel failover-timeout %[1]s %[7]d\n",
		watched, password, host, port, sentinels/2+1, downAfter, failoverTimeout)
	o.Settings = map[string]string{"requirepass": password}
	for range sentinels {
		n, err := server.Launch(bin, 0, func(port int) (*Store, error) { return start(ctx, bin, port, o, text) })
		if err != nil {
			return err
		}
		r.nodes = append(r.nodes, n)
	}
	for _, n := range r.nodes[known:] {
		err := poll(ctx, "the sentinels to find each other", func() (bool, error) {
			m := goredis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", watched)
			err := n.admin.Process(ctx, m)
			return m.Val()["num-slaves"] == fmt.Sprint(known-1) && m.Val()["num-other-sentinels"] == fmt.Sprint(sentinels-1), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
