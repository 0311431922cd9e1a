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

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Breakable = (*Store)(nil)

// faults are the commands that inflict one on each master, and that end it.
var faults = map[string]struct{ inflict, mend []any }{
	"flushed":      {inflict: []any{"FLUSHALL"}},
	"scripts-lost": {inflict: []any{"SCRIPT", "FLUSH"}},
	"full":         {inflict: []any{"CONFIG", "SET", "maxmemory", 1}, mend: []any{"CONFIG", "SET", "maxmemory", 0}},
	evicting:       {},
}

const evicting = "evicting"

// CanBreak implements [stores.Breakable]. The faults of a Redis of its own are "flushed" (FLUSHALL), "scripts-lost"
// (SCRIPT FLUSH), "full" (its memory, so that writes are refused) and "evicting" (nine of ten keys, by another client
// that fills the memory). Those of a cluster are "slot-moved" (one with keys, to another master) and "node-killed" (a
// master with keys, whose replica takes over).
func (r *Store) CanBreak(ctx context.Context, fault string) error {
	_, known := faults[fault]
	client, cluster := r.admin.(*goredis.ClusterClient)
	memory := fault == "full" || fault == evicting
	switch {
	case known && !r.Owned():
		return server.ErrNotOurs
	case known && memory && r.model != nil:
		return errors.New("the memory of miniredis has no bound: use process")
	case known && memory && r.Info().Evicts:
		return errors.New("its memory has a bound of its own")
	case known && fault == evicting && cluster:
		return errors.New("a cluster cannot be filled evenly: use process")
	case known, fault == "slot-moved" && cluster && r.Owned():
		return nil
	case fault == "node-killed" && cluster && r.Owned():
		_, _, err := r.pairOf(ctx, client.Options().Password, "")
		return err
	case fault == leases.Restarted && r.model == nil && r.self.Own != nil:
		set, err := r.admin.ConfigGet(ctx, "appendonly").Result()
		if err == nil && set["appendonly"] != "yes" {
			err = errors.New("it keeps nothing on a disk: use process:durable, or :empty for one that comes back without " +
				"its data")
		}
		if err != nil {
			return err
		}
	}
	return r.common.CanBreak(ctx, fault)
}

// Break implements [stores.Breakable].
func (r *Store) Break(ctx context.Context, fault string,
	scope stores.Scope) (mend func(context.Context) error, err error) {
	f, known := faults[fault]
	client, cluster := r.admin.(*goredis.ClusterClient)
	switch {
	case fault == "slot-moved" && cluster:
		return r.moveSlot(ctx, client, scope)
	case fault == "node-killed" && cluster:
		return r.killNode(ctx, client, scope)
	case !known:
		return r.common.Break(ctx, fault, scope)
	case fault == evicting:
		return r.evict(ctx)
	}
	return func(ctx context.Context) error { return r.command(ctx, f.mend) }, r.command(ctx, f.inflict)
}

// evict has another client fill the memory, and then bounds it so that a tenth of that fits.
func (r *Store) evict(ctx context.Context) (mend func(context.Context) error, err error) {
	before, err1 := r.Stats(ctx)
	_, err2 := r.admin.Eval(ctx, "for i = 1, 8000 do redis.call('SET', 'filling:' .. i, string.rep('x', 1000)) end "+
		"return 1", nil).Result()
	full, err3 := r.Stats(ctx)
	bound := (before.Memory + (full.Memory-before.Memory)/10) / int64(1+len(r.nodes)) // of which each has all keys
	mend = func(ctx context.Context) error {
		return errors.Join(r.command(ctx, []any{"CONFIG", "SET", "maxmemory", 0}),
			r.command(ctx, []any{"CONFIG", "SET", "maxmemory-policy", noEviction}),
			r.admin.Eval(ctx, "for i = 1, 8000 do redis.call('UNLINK', 'filling:' .. i) end return 1", nil).Err())
	}
	return mend, errors.Join(err1, err2, err3,
		r.command(ctx, []any{"CONFIG", "SET", "maxmemory-policy", "allkeys-random"}),
		r.command(ctx, []any{"CONFIG", "SET", "maxmemory", bound}))
}

// command sends a command to each master; none if it is empty.
func (r *Store) command(ctx context.Context, args []any) (err error) {
	client, cluster := r.admin.(*goredis.ClusterClient)
	switch {
	case len(args) == 0:
		return nil
	case cluster:
		err = client.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error {
			return c.Do(ctx, args...).Err()
		})
	default:
		err = r.admin.Do(ctx, args...).Err()
	}
	return format.Wrapf(err, "%v", args[0])
}

// moveSlot gives a slot with keys of scope to another master, with all its keys, as redis-cli --cluster reshard does.
// Clients are sent after them by ASK until mend is called, and by MOVED from then on.
func (r *Store) moveSlot(ctx context.Context, client *goredis.ClusterClient,
	scope stores.Scope) (mend func(context.Context) error, err error) {
	key, err1 := r.keyOf(ctx, scope)
	slot, err2 := client.ClusterKeySlot(ctx, key).Result()
	from, err3 := client.MasterForKey(ctx, key)
	to := from
	err = cmp.Or(err1, err2, err3)
	for i := 0; err == nil && to == from; i++ {
		to, err = client.MasterForKey(ctx, strconv.Itoa(i))
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
	limit := server.OpenTimeout.Milliseconds()
	password := to.Options().Password
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
		return errors.Join(move(ctx), own(ctx, to), client.ForEachMaster(ctx, own))
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
	return goredis.NewClient(&goredis.Options{Addr: net.JoinHostPort("127.0.0.1", portOf(s)), Password: password,
		MaxRetries: -1})
}

// pairOf are a master of a cluster and a replica of it: the master at an address, if it has one. The cluster itself
// does not tell of replicas that were told nothing yet.
func (r *Store) pairOf(ctx context.Context, password, at string) (master *server.Child, heir server.Server, err error) {
	group, _ := r.self.Own.(server.Group)
	err = errors.New("none of its masters has a replica: use process:cluster=3,replicas=1")
	for _, s := range group {
		client := nodeOf(s, password)
		f, _ := info(ctx, client) // or it is gone
		_ = client.Close()
		for _, m := range group {
			if port := portOf(m); port == f["master_port"] && (master == nil || strings.HasSuffix(at, ":"+port)) {
				master = m.(*server.Child)
				heir = s
				err = nil
			}
		}
	}
	return master, heir, err
}

// killNode kills a master with keys of scope, and has its replica take its place. Mend starts it again, to follow that
// one.
func (r *Store) killNode(ctx context.Context, client *goredis.ClusterClient,
	scope stores.Scope) (mend func(context.Context) error, err error) {
	password := client.Options().Password
	key, err1 := r.keyOf(ctx, scope)
	asked, err2 := client.MasterForKey(ctx, key)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	master, next, err := r.pairOf(ctx, password, asked.Options().Addr)
	if err != nil {
		return nil, err
	}
	node := nodeOf(master, password)
	heir := nodeOf(next, password)
	follows := func(ctx context.Context) error {
		f, err := info(ctx, heir)
		if online(f, node.Options().Addr) {
			return nil
		}
		return errors.Join(errors.New("it does not follow its successor yet"), err,
			node.ConfigSet(ctx, "masterauth", password).Err())
	}
	mend = func(ctx context.Context) error {
		return errors.Join(master.Again(ctx, follows), node.Close(), heir.Close())
	}
	return mend, errors.Join(heir.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(), master.Kill(ctx),
		heir.Do(ctx, "CLUSTER", "FAILOVER", "TAKEOVER").Err())
}
