package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/stores"
)

// The names, behind "redis.", that say more of a store than that it is another one.
const (
	nameReplica    = "replica"    // a replica of the main store
	nameReplicated = "replicated" // a server of its own with a replica
	nameDurable    = "durable"    // a server of its own that flushes each write to disk
)

// openFurther opens a further Redis: by its spec, or as the run's main one was opened.
// A bare word of a spec means what the name says, so that "redis.durable=process" is
// durable.
func openFurther(ctx context.Context, f stores.Further) (stores.Store, error) {
	given := f.Spec != ""
	word, _, shaped := strings.Cut(cmp.Or(f.Spec, f.MainSpec), ":")
	main, _ := f.Main.(*Store)
	bare := word == "auto" || word == "process" || word == "container"
	if given && (shaped || !bare) {
		return stores.Opener(Open)(ctx, f.Spec, f.Options)
	}
	also := ""
	switch f.Role() {
	case nameReplica:
		return replicaOf(ctx, main, f.Options)
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
		return nil, fmt.Errorf("an embedded Redis cannot stand for it: use --store %s=process", f.Name)
	case word == "embedded":
		return stores.Opener(Open)(ctx, word, f.Options)
	case !bare:
		return nil, fmt.Errorf("what --redis leads to is not started here, so no further one is: give it by --store %s=SPEC", f.Name)
	}
	return stores.Opener(Open)(ctx, word+also, f.Options)
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
func replicaOf(ctx context.Context, main *Store, o stores.Options) (stores.Store, error) {
	switch {
	case main == nil:
		return nil, errors.New("there is no redis that it could be a replica of")
	case main.self.Own == nil || main.dial != nil || main.self.About.Kind != stores.KindProcess:
		return nil, errors.New("a replica is started for a Redis that was started as a process: use --redis process, " +
			"or give the address of yours by --store redis.replica=redis://host:port")
	case len(main.nodes) > 0:
		// It is closed and counted by itself from now on.
		r := main.nodes[0]
		main.nodes = main.nodes[1:]
		return r, nil
	}
	bin, err := find()
	if err != nil {
		return nil, err
	}
	r, err := openProcess(ctx, bin, false, o)
	if err != nil {
		return nil, err
	}
	if err := r.follow(ctx, main); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}
