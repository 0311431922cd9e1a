package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/stores"
)

// scanBatch is how many keys are asked for, and dealt with, at a time.
const scanBatch = 1000

// Count counts the keys of the server, or of all masters of a cluster.
func (r *Store) Count(ctx context.Context) (usage stores.Usage, err error) {
	var one sync.Mutex // the masters are asked at the same time
	of := func(ctx context.Context, client *goredis.Client) error {
		f, err := info(ctx, client)
		one.Lock()
		defer one.Unlock()
		bytes, _ := strconv.ParseInt(f["used_memory_dataset"], 10, 64)
		usage.Bytes += bytes
		for name, text := range f {
			var keys, expire int64
			if _, bad := fmt.Sscanf(text, "keys=%d,expires=%d", &keys, &expire); bad == nil && strings.HasPrefix(name, "db") {
				usage.Keys = usage.Keys + keys
				usage.WithoutTTL = usage.WithoutTTL + keys - expire
			}
		}
		return err
	}
	switch c := r.admin.(type) {
	case *goredis.ClusterClient:
		err = c.ForEachMaster(ctx, of)
	case *goredis.Client:
		if r.model != nil { // which has no INFO of its own
			return r.usage(ctx, "", nil)
		}
		err = of(ctx, c)
	}
	return usage, format.Wrapf(err, "count the keys of redis")
}

// usage counts the keys that begin with prefix, and has w weigh them; nil weighs none.
func (r *Store) usage(ctx context.Context, prefix string, w *weigher) (usage stores.Usage, err error) {
	seen := map[string]struct{}{} // SCAN may show a key more than once
	err = r.scan(ctx, prefix, func(client goredis.Cmdable, keys []string) error {
		pipe := client.Pipeline()
		var fresh []string
		var ttls []*goredis.DurationCmd
		for _, k := range keys {
			if _, again := seen[k]; !again {
				seen[k] = struct{}{}
				fresh = append(fresh, k)
				ttls = append(ttls, pipe.PTTL(ctx, k))
			}
		}
		if len(ttls) == 0 {
			return nil
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		for _, ttl := range ttls {
			switch ttl.Val() {
			case -2: // went since it was listed
			case -1:
				usage.WithoutTTL++
				usage.Keys++
			default:
				usage.Keys++
			}
		}
		w.weigh(ctx, client, fresh)
		return nil
	})
	if err != nil {
		return stores.Usage{}, fmt.Errorf("count keys under %q: %w", prefix, err)
	}
	usage.Bytes = w.total()
	return usage, nil
}

// WipePrefix removes the keys that begin with prefix, and no others, and says how
// many it removed. Keys that are made meanwhile may stay. An empty prefix is
// refused.
func (r *Store) WipePrefix(ctx context.Context, prefix string) (removed int64, err error) {
	if prefix == "" {
		return 0, errors.New("wipe redis: an empty prefix would remove every key")
	}
	err = r.scan(ctx, prefix, func(client goredis.Cmdable, keys []string) error {
		pipe := client.Pipeline() // and not one command: a cluster refuses keys of several slots
		for _, k := range keys {
			pipe.Unlink(ctx, k)
		}
		done, err := pipe.Exec(ctx)
		for _, cmd := range done {
			removed += cmd.(*goredis.IntCmd).Val()
		}
		return err
	})
	return removed, format.Wrapf(err, "wipe keys under %q", prefix)
}

// scan calls f with the keys under prefix, never with none, and a client of the
// server that has them.
func (r *Store) scan(ctx context.Context, prefix string, f func(client goredis.Cmdable, keys []string) error) error {
	pattern := server.GlobEscape(prefix) + "*" // Redis' patterns escape as paths' do
	if cluster, ok := r.admin.(*goredis.ClusterClient); ok {
		var one sync.Mutex // the shards are asked at the same time
		return cluster.ForEachMaster(ctx, func(ctx context.Context, client *goredis.Client) error {
			one.Lock()
			defer one.Unlock()
			return scan(ctx, client, pattern, f)
		})
	}
	return scan(ctx, r.admin, pattern, f)
}

func scan(ctx context.Context, client goredis.Cmdable, pattern string,
	f func(c goredis.Cmdable, keys []string) error) error {
	var cursor uint64
	for {
		keys, next, err := client.Scan(ctx, cursor, pattern, scanBatch).Result()
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(keys, scanBatch) { // an embedded server returns all keys at once
			if err := f(client, batch); err != nil {
				return err
			}
		}
		cursor = next
		if cursor == 0 {
			return nil
		}
	}
}

var _ stores.Counter = (*Store)(nil)

// Each of the first weighAll keys is weighed, and one in weighEvery of the others.
const (
	weighAll   = 20_000
	weighEvery = 16
)

// weigher asks a server how much memory keys take. A nil one asks nothing.
type weigher struct {
	keys    int64 // up to now, those that went meanwhile included
	bytes   int64 // of the first ones
	sampled int64 // keys among the others, and their bytes
	sample  int64
	refused bool
}

// weigh adds keys to the total. A server that does not answer the question, as hosted
// ones may not, says nothing about any.
func (w *weigher) weigh(ctx context.Context, client goredis.Cmdable, keys []string) {
	if w == nil || w.refused {
		return
	}
	pipe := client.Pipeline()
	var first, others []*goredis.IntCmd
	for _, k := range keys {
		switch n := w.keys; {
		case n < weighAll:
			first = append(first, pipe.MemoryUsage(ctx, k, 0)) // 0: all that it holds
		case n%weighEvery == 0:
			others = append(others, pipe.MemoryUsage(ctx, k, 0))
		}
		w.keys++
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	sum := func(cmds []*goredis.IntCmd) (bytes int64) {
		for _, cmd := range cmds {
			if err := cmd.Err(); err != nil && !errors.Is(err, goredis.Nil) { // nil: it went since it was listed
				w.refused = true
			}
			bytes += cmd.Val()
		}
		return bytes
	}
	w.bytes += sum(first)
	w.sample += sum(others)
	w.sampled += int64(len(others))
}

// total is the bytes of all keys; 0 if the server did not say.
func (w *weigher) total() int64 {
	switch {
	case w == nil || w.refused:
		return 0
	case w.sampled == 0:
		return w.bytes
	}
	return w.bytes + int64(float64(w.sample)/float64(w.sampled)*float64(w.keys-weighAll))
}
