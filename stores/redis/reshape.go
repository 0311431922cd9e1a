package redis

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

// moveSlot gives a slot with keys of scope to another master, with all its keys, as redis-cli --cluster reshard does. Clients are
// sent after them by ASK until mend is called, and by MOVED from then on.
func (r *Store) moveSlot(ctx context.Context, c *goredis.ClusterClient, scope stores.Scope) (mend func(context.Context) error, err error) {
	key, err1 := r.keyOf(ctx, scope)
	slot, err2 := c.ClusterKeySlot(ctx, key).Result()
	from, err3 := c.MasterForKey(ctx, key)
	to, err := from, cmp.Or(err1, err2, err3)
	for i := 0; err == nil && to == from; i++ {
		to, err = c.MasterForKey(ctx, strconv.Itoa(i))
	}
	if err != nil {
		return nil, err
	}
	set := func(ctx context.Context, at *goredis.Client, how string, node *goredis.Client) error {
		id, err := node.ClusterMyID(ctx).Result()
		if err == nil {
			err = at.Do(ctx, "CLUSTER", "SETSLOT", slot, how, id).Err()
		}
		return err
	}
	host, port, _ := net.SplitHostPort(to.Options().Addr)
	limit, password := server.OpenTimeout.Milliseconds(), to.Options().Password
	move := func(ctx context.Context) (err error) {
		for keys := []string{key}; err == nil && len(keys) > 0; {
			keys, err = from.ClusterGetKeysInSlot(ctx, int(slot), scanBatch).Result()
			for _, k := range keys {
				err = errors.Join(err, from.Do(ctx, "MIGRATE", host, port, k, 0, limit, "AUTH", password).Err())
			}
		}
		return err
	}
	mend = func(ctx context.Context) error {
		own := func(ctx context.Context, m *goredis.Client) error { return set(ctx, m, "NODE", to) }
		return errors.Join(move(ctx), own(ctx, to), c.ForEachMaster(ctx, own))
	}
	return mend, errors.Join(set(ctx, to, "IMPORTING", from), set(ctx, from, "MIGRATING", to), move(ctx))
}

// keyOf is a key that callers of the run ask for; its prefix if it has none yet.
func (r *Store) keyOf(ctx context.Context, scope stores.Scope) (key string, err error) {
	key = scope.Prefix()
	err = r.scan(ctx, key, func(_ goredis.Cmdable, keys []string) error {
		if i := slices.IndexFunc(keys, func(k string) bool { return !strings.Contains(k, "warm-up-") }); i >= 0 {
			key = keys[i]
		}
		return nil
	})
	return key, err
}

// portOf is the port of a server that was started here, and nodeOf a client of it.
func portOf(s server.Server) string {
	args := s.(*server.Child).Args()
	return args[slices.Index(args, "--port")+1]
}

func nodeOf(s server.Server, password string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: net.JoinHostPort("127.0.0.1", portOf(s)), Password: password, MaxRetries: -1})
}

// pairOf are a master of a cluster and a replica of it: the master at an address, if it has one. The cluster itself does not tell of
// replicas that were told nothing yet.
func (r *Store) pairOf(ctx context.Context, password, at string) (master *server.Child, heir server.Server, err error) {
	group, _ := r.self.Own.(server.Group)
	err = errors.New("none of its masters has a replica: use process:cluster=3,replicas=1")
	for _, s := range group {
		c := nodeOf(s, password)
		f, _ := info(ctx, c) // or it is gone
		_ = c.Close()
		for _, m := range group {
			if port := portOf(m); port == f["master_port"] && (master == nil || strings.HasSuffix(at, ":"+port)) {
				master, heir, err = m.(*server.Child), s, nil
			}
		}
	}
	return master, heir, err
}

// killNode kills a master with keys of scope, and has its replica take its place. Mend starts it again, to follow that one.
func (r *Store) killNode(ctx context.Context, c *goredis.ClusterClient, scope stores.Scope) (mend func(context.Context) error, err error) {
	password := c.Options().Password
	key, err1 := r.keyOf(ctx, scope)
	asked, err2 := c.MasterForKey(ctx, key)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	master, next, err := r.pairOf(ctx, password, asked.Options().Addr)
	if err != nil {
		return nil, err
	}
	node, heir := nodeOf(master, password), nodeOf(next, password)
	follows := func(ctx context.Context) error {
		f, err := info(ctx, heir)
		if online(f, node.Options().Addr) {
			return nil
		}
		return errors.Join(errors.New("it does not follow its successor yet"), err, node.ConfigSet(ctx, "masterauth", password).Err())
	}
	mend = func(ctx context.Context) error {
		return errors.Join(master.Again(ctx, follows), node.Close(), heir.Close())
	}
	return mend, errors.Join(heir.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(), master.Kill(ctx),
		heir.Do(ctx, "CLUSTER", "FAILOVER", "TAKEOVER").Err())
}
