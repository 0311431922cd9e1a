// Package overwrite changes the counters of a strategy in mid-run, as somebody else would who has access to its Redis.
package overwrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Change adds to each whole number that is a string, or a field of a hash, at a key that matches.
type Change struct {
	// Keys is a pattern of what follows the prefix of the run, such as "quota:*".
	Keys string
	// At is when, as a share of the duration, above 0 and below 1.
	At float64
	// By is what is added, in units.
	By int64
}

// Parse reads "quota:*:0.5:100".
func Parse(text string) (c Change, err error) {
	rest, by, ok := cutLast(text)
	keys, at, ok2 := cutLast(rest)
	c.Keys = keys
	var err1, err2 error
	c.At, err1 = strconv.ParseFloat(at, 64)
	c.By, err2 = strconv.ParseInt(by, 10, 64)
	_, err3 := path.Match(flat(keys), "")
	if !ok || !ok2 || keys == "" || c.By == 0 || !(c.At > 0 && c.At < 1) || errors.Join(err1, err2, err3) != nil {
		return c, fmt.Errorf("%q is not of the form quota:*:0.5:100: the pattern of keys without their prefix, when, as a share of the "+
			"duration above 0 and below 1, and what is added", text)
	}
	return c, nil
}

func cutLast(text string) (before, last string, ok bool) {
	i := strings.LastIndexByte(text, ':')
	return text[:max(i, 0)], text[i+1:], i >= 0
}

// Plan is what several texts say, in the order of their time. They have been read before.
func Plan(texts []string) (out []Change) {
	for _, text := range texts {
		c, _ := Parse(text)
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	return out
}

// After is how long after the beginning of a run of that length it happens.
func (c Change) After(length time.Duration) time.Duration {
	return time.Duration(c.At * float64(length))
}

// flat has a star match slashes, too, which some names of subjects have.
func flat(name string) string { return strings.ReplaceAll(name, "/", "\x01") }

// Apply changes those of the keys that match after the prefix, and counts the values that it changed.
func (c Change) Apply(ctx context.Context, r redis.Cmdable, prefix string, keys []string) (changed int64, err error) {
	for _, key := range keys {
		name, own := strings.CutPrefix(key, prefix)
		if match, _ := path.Match(flat(c.Keys), flat(name)); !match || !own {
			continue
		}
		kind, err := r.Type(ctx, key).Result()
		switch {
		case err != nil:
		case kind == "string" && whole(r.Get(ctx, key).Val()):
			err = r.IncrBy(ctx, key, c.By).Err()
			changed++
		case kind == "hash":
			fields := r.HGetAll(ctx, key).Val()
			for _, f := range slices.Sorted(maps.Keys(fields)) {
				if whole(fields[f]) {
					err = errors.Join(err, r.HIncrBy(ctx, key, f, c.By).Err())
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
