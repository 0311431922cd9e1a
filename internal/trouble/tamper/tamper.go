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

	"github.com/quotabench/quotabench/internal/trouble"
)

// flat has a star match slashes, too, which some names of subjects have.
func flat(name string) string { return strings.ReplaceAll(name, "/", "\x01") }

// Apply adds to each whole number that is a string, or a field of a hash, at those of the keys that match the event's
// pattern after the prefix, and counts the values that it changed.
func Apply(ctx context.Context, event *trouble.Event, client redis.Cmdable, prefix string,
	keys []string) (changed int64, err error) {
	for _, key := range keys {
		name, own := strings.CutPrefix(key, prefix)
		if match, _ := path.Match(flat(event.Where.Pattern), flat(name)); !match || !own {
			continue
		}
		kind, err := client.Type(ctx, key).Result()
		switch {
		case err != nil:
		case kind == "string" && whole(client.Get(ctx, key).Val()):
			err = client.IncrBy(ctx, key, event.What.Units).Err()
			changed++
		case kind == "hash":
			fields := client.HGetAll(ctx, key).Val()
			for _, text := range slices.Sorted(maps.Keys(fields)) {
				if whole(fields[text]) {
					err = errors.Join(err, client.HIncrBy(ctx, key, text, event.What.Units).Err())
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
func Keys(ctx context.Context, client redis.UniversalClient, prefix string) (keys []string, err error) {
	var mutex sync.Mutex // masters are asked at once
	scan := func(ctx context.Context, c redis.Cmdable) error {
		i := c.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for i.Next(ctx) {
			mutex.Lock()
			keys = append(keys, i.Val())
			mutex.Unlock()
		}
		return i.Err()
	}
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	} else {
		err = scan(ctx, client)
	}
	return keys, err
}
