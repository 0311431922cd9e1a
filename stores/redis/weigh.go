package redis

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/stores"
)

var _ stores.Counter = (*Store)(nil)

// Of the first weighAll keys each is weighed, and of the others one in weighEvery.
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
func (w *weigher) weigh(ctx context.Context, c goredis.Cmdable, keys []string) {
	if w == nil || w.refused {
		return
	}
	pipe := c.Pipeline()
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
