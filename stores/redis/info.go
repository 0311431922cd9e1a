package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/stores"
)

var errOld = errors.New("redis is too old")

// Stats reads the server's statistics, which takes one command.
func (r *Store) Stats(ctx context.Context) (stores.Stats, error) {
	if r.model != nil {
		return stores.Stats{}, nil
	}
	f, err := r.serverInfo(ctx)
	if err != nil {
		return stores.Stats{}, err
	}
	n := func(name string) int64 {
		v, _ := strconv.ParseInt(f[name], 10, 64) // absent from other versions: 0
		return v
	}
	seconds := func(name string) float64 {
		v, _ := strconv.ParseFloat(f[name], 64)
		return v
	}
	return stores.Stats{
		Known:       true,
		Incarnation: f["run_id"],
		Commands:    n("total_commands_processed"),
		Evicted:     n("evicted_keys"),
		Expired:     n("expired_keys"),
		Forks:       n("total_forks"),
		Forking:     n("rdb_bgsave_in_progress")+n("aof_rewrite_in_progress") > 0,
		CPU:         time.Duration((seconds("used_cpu_user") + seconds("used_cpu_sys")) * float64(time.Second)),
		Memory:      n("used_memory"),
	}, nil
}

// serverInfo is INFO by field.
func (r *Store) serverInfo(ctx context.Context) (map[string]string, error) {
	text, err := r.admin.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("ask redis for its state: %w", err)
	}
	f := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[k] = v
		}
	}
	return f, nil
}

// describe completes Info from what the server says, and refuses a server that
// is too old.
func (r *Store) describe(ctx context.Context) error {
	if r.model != nil {
		return r.admin.Ping(ctx).Err()
	}
	f, err := r.serverInfo(ctx)
	if err != nil {
		return err
	}
	r.info.Version = f["redis_version"]
	major, _, _ := strings.Cut(r.info.Version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < oldest {
		return fmt.Errorf("%w at %s: it is version %s, and %d.0 is the oldest that works", errOld, r.base.Addr, r.info.Version, oldest)
	}
	r.info.Durability = r.durability(ctx)
	return nil
}

// durability puts the server's settings into words. Hosted servers may not let
// us look.
func (r *Store) durability(ctx context.Context) string {
	get := func(name string) (string, bool) {
		m, err := r.admin.ConfigGet(ctx, name).Result()
		v, ok := m[name]
		return v, err == nil && ok
	}
	save, ok1 := get("save")
	aof, ok2 := get("appendonly")
	fsync, ok3 := get("appendfsync")
	if !ok1 || !ok2 || !ok3 {
		return "unknown: the server does not show its settings"
	}
	snapshots, log := "no snapshots", "no append-only file"
	if save != "" {
		snapshots = "snapshots (" + save + ")"
	}
	if aof == "yes" {
		log = "append-only file, fsync " + fsync
	}
	return snapshots + ", " + log
}
