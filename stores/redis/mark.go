package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/stores"
)

var _ stores.Marker = (*Store)(nil)

// mark is the name of the key that a run would miss. Each master of a cluster has one,
// told apart by the number.
func mark(scope stores.Scope, number int) string {
	return fmt.Sprintf("%squotabench-mark:%d", scope.Prefix(), number)
}

// Mark implements [stores.Marker] by a key without an expiry, in a cluster by one on
// each master.
func (r *Store) Mark(ctx context.Context, scope stores.Scope) error {
	if r.self.Replica {
		return nil
	}
	keys := []string{mark(scope, 0)}
	var err error
	if client, ok := r.admin.(*goredis.ClusterClient); ok {
		keys, err = marksOf(ctx, client, scope)
	}
	if err == nil {
		err = setAll(ctx, r.admin, keys, func(pipeliner goredis.Pipeliner, key string) { pipeliner.Set(ctx, key, 1, 0) })
	}
	if err != nil {
		return fmt.Errorf("leave a mark in redis: %w", err)
	}
	r.marks.Store(scope, keys)
	return nil
}

func setAll(ctx context.Context, client goredis.UniversalClient, keys []string,
	set func(pipeliner goredis.Pipeliner, key string)) error {
	_, err := client.Pipelined(ctx, func(pipeliner goredis.Pipeliner) error {
		for _, key := range keys {
			set(pipeliner, key)
		}
		return nil
	})
	return err
}

// triesPerMaster is how many names are tried, for each master, to find one that its
// slots have.
const triesPerMaster = 16

// marksOf are names of keys, one on each master.
func marksOf(ctx context.Context, client *goredis.ClusterClient, scope stores.Scope) ([]string, error) {
	ranges, err := client.ClusterSlots(ctx).Result() //nolint:staticcheck // servers before 7.0 have no CLUSTER SHARDS
	if err != nil {
		return nil, err
	}
	masters := map[string]bool{} // whether one has a key already
	for _, slot := range ranges {
		masters[slot.Nodes[0].ID] = false
	}
	var keys []string
	for i := range triesPerMaster * len(masters) {
		if len(keys) == len(masters) {
			break
		}
		key := mark(scope, i)
		slot, err := client.ClusterKeySlot(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(ranges, func(clusterSlot goredis.ClusterSlot) bool {
			return int64(clusterSlot.Start) <= slot && slot <= int64(clusterSlot.End)
		})
		if at < 0 || masters[ranges[at].Nodes[0].ID] {
			continue
		}
		masters[ranges[at].Nodes[0].ID] = true
		keys = append(keys, key)
	}
	return keys, nil
}

// Marked implements [stores.Marker]. It costs a write and two short answers of each
// master. The write leaves the key's expiry unchanged: whoever gives all keys one, the
// mark among them, makes the run lose data, and the mark then goes with them.
func (r *Store) Marked(ctx context.Context, scope stores.Scope) (stores.Sign, error) {
	if client, ok := r.admin.(*goredis.ClusterClient); ok {
		return r.markedCluster(ctx, client, scope)
	}
	var set *goredis.BoolCmd
	var texts []*goredis.StringCmd
	_, err := r.admin.Pipelined(ctx, func(pipeliner goredis.Pipeliner) error {
		if !r.self.Replica {
			set = pipeliner.SetXX(ctx, mark(scope, 0), 1, goredis.KeepTTL)
		}
		if r.self.About.Version != "" { // miniredis, also that of another process, has none and knows of neither
			texts = askSigns(ctx, pipeliner)
		}
		return nil
	})
	if err != nil {
		return stores.Sign{}, err
	}
	sign := stores.Sign{There: set == nil || set.Val()}
	readSigns(&sign, texts)
	return sign, nil
}

func (r *Store) markedCluster(ctx context.Context, client *goredis.ClusterClient,
	scope stores.Scope) (sign stores.Sign, err error) {
	known, _ := r.marks.Load(scope)
	keys, _ := known.([]string)
	var set []*goredis.BoolCmd
	keep := func(pipeliner goredis.Pipeliner, key string) {
		set = append(set, pipeliner.SetXX(ctx, key, 1, goredis.KeepTTL))
	}
	if err := setAll(ctx, client, keys, keep); err != nil {
		return sign, err
	}
	sign.There = !slices.ContainsFunc(set, func(boolCmd *goredis.BoolCmd) bool { return !boolCmd.Val() })
	var one sync.Mutex // the masters are asked at the same time
	var starts []string
	err = client.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error {
		var texts []*goredis.StringCmd
		_, err := c.Pipelined(ctx, func(pipeliner goredis.Pipeliner) error {
			texts = askSigns(ctx, pipeliner)
			return nil
		})
		one.Lock()
		defer one.Unlock()
		if err == nil {
			readSigns(&sign, texts)
			starts = append(starts, sign.Incarnation)
		}
		return err
	})
	slices.Sort(starts)
	sign.Incarnation = strings.Join(starts, ",")
	return sign, err
}

// askSigns asks for what readSigns reads.
func askSigns(ctx context.Context, pipeliner goredis.Pipeliner) []*goredis.StringCmd {
	return []*goredis.StringCmd{pipeliner.Info(ctx, "server"), pipeliner.Info(ctx, "errorstats")}
}

// readSigns adds the errors of one server, and notes which one it is.
func readSigns(sign *stores.Sign, texts []*goredis.StringCmd) {
	for _, cmd := range texts {
		for name, text := range fields(cmd.Val()) {
			kind, is := strings.CutPrefix(name, "errorstat_")
			count, counted := strings.CutPrefix(text, "count=")
			if v, err := strconv.ParseInt(count, 10, 64); is && counted && err == nil {
				if sign.Errors == nil {
					sign.Errors = map[string]int64{}
				}
				sign.Errors[kind] += v
			}
			if name == "run_id" {
				sign.Incarnation = text
			}
		}
	}
}

// Unmark implements [stores.Marker].
func (r *Store) Unmark(ctx context.Context, scope stores.Scope) error {
	known, ok := r.marks.LoadAndDelete(scope)
	if !ok {
		return nil
	}
	return setAll(ctx, r.admin, known.([]string), func(pipeliner goredis.Pipeliner, key string) {
		pipeliner.Del(ctx, key)
	})
}
