package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Follower = (*Store)(nil)

// startReplicated starts a server, and replicas that follow it.
func startReplicated(ctx context.Context, replicas int, options stores.Options,
	one func(stores.Options) (*Store, error)) (*Store, error) {
	master, err := one(options)
	if err != nil {
		return nil, err
	}
	master.options = options
	for range replicas {
		store, err := one(options)
		if err == nil {
			master.nodes = append(master.nodes, store) // which closes it
			err = store.follow(ctx, master)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start a replica: %w", err), master.Close())
		}
	}
	master.self.About.Detail += "; followed by " + count(replicas, "replica")
	return master, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "a " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// follow makes r, which was started here, a replica of another server that was, and
// waits until it has what the other one holds.
func (r *Store) follow(ctx context.Context, master *Store) error {
	return r.followAt(ctx, master, master.base.Addr)
}

// followAt is follow by an address that leads to the master.
func (r *Store) followAt(ctx context.Context, master *Store, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	return r.followBy(ctx, master, func() error { return r.admin.SlaveOf(ctx, host, port).Err() })
}

// followBy is follow by another command.
func (r *Store) followBy(ctx context.Context, master *Store, begin func() error) error {
	// The first copy begins at once instead of waiting for further replicas.
	if err := master.admin.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(); err != nil {
		return fmt.Errorf("prepare the master: %w", err)
	}
	if err := r.admin.ConfigSet(ctx, "masterauth", master.base.Password).Err(); err != nil {
		return fmt.Errorf("prepare the replica: %w", err)
	}
	if err := begin(); err != nil {
		return fmt.Errorf("follow the master: %w", err)
	}
	r.self.About.Detail += ", a replica of " + master.base.Addr
	r.self.Replica = true
	return poll(ctx, "the replica's first copy of its master", func() (bool, error) {
		f, err := info(ctx, r.admin)
		if err != nil || f["master_link_status"] != "up" {
			return false, err
		}
		f, err = info(ctx, master.admin)
		// It forked to send the copy, and counts a replica from its first answer on.
		return f["rdb_bgsave_in_progress"] == "0" && online(f, r.base.Addr), err
	})
}

// online reports whether a master's description of itself has the replica with that
// address among those that it sends its writes to.
func online(f map[string]string, addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	for i := range maxReplicas {
		fields := strings.Split(f[fmt.Sprintf("slave%d", i)], ",")
		if slices.Contains(fields, "port="+port) && slices.Contains(fields, "state=online") {
			return true
		}
	}
	return false
}

// CatchUp waits until the replica has all that its master had when it was called.
func (r *Store) CatchUp(ctx context.Context, store stores.Store) error {
	master, ok := store.(*Store)
	if !ok {
		return fmt.Errorf("wait for a replica: its master is a %T", store)
	}
	f, err := info(ctx, master.admin)
	if err != nil {
		return err
	}
	goal, err := strconv.ParseInt(f["master_repl_offset"], 10, 64)
	if err != nil {
		return errors.New("wait for a replica: its master does not tell how far it is")
	}
	return poll(ctx, "a replica", func() (bool, error) {
		f, err := info(ctx, r.admin)
		if err != nil {
			return false, err
		}
		at, err := strconv.ParseInt(f["slave_repl_offset"], 10, 64)
		return at >= goal && f["master_link_status"] == "up", err
	})
}

// Promote makes a replica a master of its own, with what it has at that moment.
func (r *Store) Promote(ctx context.Context) error {
	if err := r.admin.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return fmt.Errorf("promote a replica: %w", err)
	}
	r.self.Replica = false
	r.self.About.Detail = strings.Replace(r.self.About.Detail, ", a replica of ", ", promoted from a replica of ", 1)
	return nil
}

// poll calls done until it is true. What it fails with it may recover from.
func poll(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, server.OpenTimeout)
	defer cancel()
	for {
		ok, err := done()
		if ok && err == nil {
			return nil
		}
		if (clock.Wall{}).Sleep(ctx, 5*time.Millisecond) != nil {
			return errors.Join(fmt.Errorf("wait for %s: %w", what, ctx.Err()), err)
		}
	}
}

// The names, behind "redis.", that say more of a store than that it is another one.
const (
	nameReplica    = "replica"    // a replica of the main store
	nameReplicated = "replicated" // a server of its own with a replica
	nameDurable    = "durable"    // a server of its own that flushes each write to disk
)

// openFurther opens a further Redis: by its spec, or as the run's main one was opened.
// A bare word of a spec means what the name says, so that "redis.durable=process" is
// durable.
func openFurther(ctx context.Context, further stores.Further) (stores.Store, error) {
	given := further.Spec != ""
	word, _, shaped := strings.Cut(cmp.Or(further.Spec, further.MainSpec), ":")
	main, _ := further.Main.(*Store)
	bare := word == "auto" || word == "process" || word == "container"
	if given && (shaped || !bare) {
		return stores.Opener(Open)(ctx, further.Spec, further.Options)
	}
	also := ""
	switch further.Role() {
	case nameReplica:
		return replicaOf(ctx, main, further.Options)
	case nameReplicated:
		if !given && main != nil && main.hasReplicas(ctx) {
			return main, nil
		}
		also = ":replicas=1"
	case nameDurable:
		also = ":durable"
	}
	switch {
	case word == "embedded" && also != "":
		return nil, fmt.Errorf("an embedded Redis cannot stand for it: use --store %s=process", further.Name)
	case word == "embedded":
		return stores.Opener(Open)(ctx, word, further.Options)
	case !bare:
		return nil, fmt.Errorf("what --redis leads to is not started here, so no further one is: give it by --store %s=SPEC",
			further.Name)
	}
	return stores.Opener(Open)(ctx, word+also, further.Options)
}

// hasReplicas reports whether replicas follow the store, wherever it was started.
func (r *Store) hasReplicas(ctx context.Context) bool {
	if _, cluster := r.admin.(*goredis.ClusterClient); cluster {
		text, err := r.admin.ClusterInfo(ctx).Result()
		f := fields(text)
		return err == nil && f["cluster_known_nodes"] != f["cluster_size"]
	}
	f, err := info(ctx, r.admin)
	return err == nil && f["role"] == "master" && f["connected_slaves"] != "" && f["connected_slaves"] != "0"
}

// replicaOf hands out a replica that main was started with, or starts one.
func replicaOf(ctx context.Context, main *Store, options stores.Options) (stores.Store, error) {
	switch {
	case main == nil:
		return nil, errors.New("there is no redis that it could be a replica of")
	case main.self.Own == nil || main.dial != nil || main.self.About.Kind != stores.KindProcess:
		return nil, errors.New("a replica is started for a Redis that was started as a process: use --redis process, " +
			"or give the address of yours by --store redis.replica=redis://host:port")
	case len(main.nodes) > 0:
		// It is closed and counted by itself from now on.
		store := main.nodes[0]
		main.nodes = main.nodes[1:]
		return store, nil
	}
	bin, err := find()
	if err != nil {
		return nil, err
	}
	r, err := openProcess(ctx, bin, false, options)
	if err != nil {
		return nil, err
	}
	if err := r.follow(ctx, main); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}
