package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/stores"
)

var errOld = errors.New("redis is too old")

// Stats reads the servers' statistics, which takes one command each. Commands
// and evictions are those of masters; processor time, memory and forks are of
// their replicas, too, if those were started with them.
func (r *Store) Stats(ctx context.Context) (stores.Stats, error) {
	if r.model != nil {
		return stores.Stats{}, nil
	}
	if client, ok := r.admin.(*goredis.ClusterClient); ok {
		return r.clusterStats(ctx, client)
	}
	var sum stores.Stats
	sum.Commands -= r.leased.Load()
	for _, n := range append([]*Store{r}, r.nodes...) {
		f, err := info(ctx, n.admin)
		if err != nil {
			return stores.Stats{}, err
		}
		add(&sum, f)
	}
	return sum, nil
}

// clusterStats are those of all servers of a cluster.
func (r *Store) clusterStats(ctx context.Context, client *goredis.ClusterClient) (sum stores.Stats, err error) {
	var one sync.Mutex // the servers are asked at the same time
	var found []map[string]string
	err = client.ForEachShard(ctx, func(ctx context.Context, c *goredis.Client) error {
		f, err := info(ctx, c)
		one.Lock()
		defer one.Unlock()
		found = append(found, f)
		return err
	})
	if err != nil {
		return stores.Stats{}, err
	}
	slices.SortFunc(found, func(a, b map[string]string) int { return strings.Compare(a["run_id"], b["run_id"]) })
	masters := int64(0)
	for _, f := range found {
		add(&sum, f)
		if f["role"] == "master" {
			masters++
		}
	}
	sum.Commands -= r.asked.Add(1)*(masters-1) + r.leased.Load()
	return sum, nil
}

// add adds what one server says about itself. Of a question to several servers, one is
// to be among the commands, as when there is only one.
func add(sum *stores.Stats, f map[string]string) {
	n := func(name string) int64 {
		v, _ := strconv.ParseInt(f[name], 10, 64) // absent from other versions: 0
		return v
	}
	seconds := func(name string) float64 {
		value, _ := strconv.ParseFloat(f[name], 64)
		return value
	}
	sum.Known = true
	if sum.Incarnation != "" {
		sum.Incarnation += ","
	}
	sum.Incarnation += f["run_id"]
	if f["role"] != "slave" {
		sum.Commands += n("total_commands_processed")
		sum.Evicted += n("evicted_keys")
	}
	sum.Forks += n("total_forks")
	sum.Forking = sum.Forking || n("rdb_bgsave_in_progress")+n("aof_rewrite_in_progress") > 0
	sum.CPU += time.Duration((seconds("used_cpu_user") + seconds("used_cpu_sys")) * float64(time.Second))
	sum.Memory += n("used_memory")
}

// info is INFO by field; in a cluster that of any server.
func info(ctx context.Context, client goredis.UniversalClient) (map[string]string, error) {
	text, err := client.Info(ctx).Result()
	return fields(text), format.Wrapf(err, "ask redis for its state")
}

// fields takes the text of INFO apart.
func fields(text string) map[string]string {
	f := map[string]string{}
	for line := range strings.Lines(text) {
		if k, text, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[k] = text
		}
	}
	return f
}

// describe completes Info from what the server says, and refuses a server that
// is too old.
func (r *Store) describe(ctx context.Context) error {
	if r.model != nil {
		return r.admin.Ping(ctx).Err()
	}
	f, err := info(ctx, r.admin)
	if err != nil {
		return err
	}
	r.self.About.Version = f["redis_version"]
	r.self.Replica = f["role"] == "slave"
	major, _, _ := strings.Cut(r.self.About.Version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < oldest {
		return fmt.Errorf("%w at %s: it is version %s, and %d.0 is the oldest that works",
			errOld, r.self.About.Addr, r.self.About.Version, oldest)
	}
	r.self.About.Durability, r.self.About.Evicts = r.durability(ctx)
	if !r.Owned() && !r.self.Replica {
		r.self.Share(board{r})
	}
	return nil
}

// durability puts the server's settings into words, and says whether one that was started here evicts keys. Hosted
// servers may not let us look.
func (r *Store) durability(ctx context.Context) (text string, evicts bool) {
	get := func(name string) (string, bool) {
		m, err := r.admin.ConfigGet(ctx, name).Result()
		text, ok := m[name]
		return text, err == nil && ok
	}
	save, ok1 := get("save")
	aof, ok2 := get("appendonly")
	fsync, ok3 := get("appendfsync")
	if !ok1 || !ok2 || !ok3 {
		return "unknown: the server does not show its settings", false
	}
	snapshots := "no snapshots"
	log := "no append-only file"
	if save != "" {
		snapshots = "snapshots (" + save + ")"
	}
	if aof == "yes" {
		log = "append-only file, fsync " + fsync
	}
	text = snapshots + ", " + log
	most, _ := get("maxmemory")
	if n, err := strconv.ParseInt(most, 10, 64); err == nil && n > 0 {
		policy, _ := get("maxmemory-policy")
		text += fmt.Sprintf(", at most %s of memory (%s)", format.Units(n, "bytes"), policy)
		evicts = r.Owned() && policy != noEviction
	}
	return text, evicts
}
