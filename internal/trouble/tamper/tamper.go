// Package tamper changes the counters of a strategy in mid-run, as somebody else would who has access to its Redis.
package tamper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota/trouble"
)

// flat has a star match slashes, too, which some names of subjects have.
func flat(name string) string { return strings.ReplaceAll(name, "/", "\x01") }

// Apply adds to each whole number that is a string, or a field of a hash, at those of the keys that match the event's pattern
// after the prefix, and counts the values that it changed.
func Apply(ctx context.Context, e *trouble.Event, r redis.Cmdable, prefix string, keys []string) (changed int64, err error) {
	for _, key := range keys {
		name, own := strings.CutPrefix(key, prefix)
		if match, _ := path.Match(flat(e.Where.Pattern), flat(name)); !match || !own {
			continue
		}
		kind, err := r.Type(ctx, key).Result()
		switch {
		case err != nil:
		case kind == "string" && whole(r.Get(ctx, key).Val()):
			err = r.IncrBy(ctx, key, e.What.Units).Err()
			changed++
		case kind == "hash":
			fields := r.HGetAll(ctx, key).Val()
			for _, f := range slices.Sorted(maps.Keys(fields)) {
				if whole(fields[f]) {
					err = errors.Join(err, r.HIncrBy(ctx, key, f, e.What.Units).Err())
					changed++
				}
			}
		}
		if err != nil {
			return changed, fmt.Errorf("overwrite %s: %w", key, err)
		}
	}
	return changed, nil
}

func whole(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// Keys are those with the prefix on all nodes that take writes.
func Keys(ctx context.Context, r redis.UniversalClient, prefix string) (keys []string, err error) {
	var mu sync.Mutex // masters are asked at once
	scan := func(ctx context.Context, c redis.Cmdable) error {
		i := c.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for i.Next(ctx) {
			mu.Lock()
			keys = append(keys, i.Val())
			mu.Unlock()
		}
		return i.Err()
	}
	if cluster, ok := r.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	} else {
		err = scan(ctx, r)
	}
	return keys, err
}
