package harness

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/stores"
)

// referenceDuration is how long each round's reference loop runs.
const referenceDuration = int64(150 * time.Millisecond)

// referenceFor measures a bare client's INCR loop on the run's Redis: as many
// goroutines and connections as the strategies get, one key, nothing else, for the
// given nanoseconds. It returns commands per second.
func referenceFor(ctx context.Context, cfg *Config, tb *timebase, name string, length int64) (float64, error) {
	c := cfg.Redis.Client(stores.ClientOptions{PoolSize: cfg.redisPool(), MaxRetries: cfg.ClientRetries})
	defer c.Close() //nolint:errcheck // nothing was written that matters
	prefix := "quotabench:" + name + ":"
	key := prefix + "reference"
	defer cfg.Redis.Wipe(context.WithoutCancel(ctx), prefix) //nolint:errcheck // the run's own wipe reports a store that is gone

	var n atomic.Int64
	var failed atomic.Pointer[error]
	pass := func(d int64) {
		end := tb.nano() + d
		var wg sync.WaitGroup
		for range cfg.Workers {
			wg.Go(func() {
				var own int64
				for tb.nano() < end && ctx.Err() == nil {
					if err := c.Incr(ctx, key).Err(); err != nil {
						failed.Store(&err)
						return
					}
					own++
				}
				n.Add(own)
			})
		}
		wg.Wait()
	}
	pass(length / 5) // connections
	n.Store(0)
	start := tb.nano()
	pass(length)
	if err := failed.Load(); err != nil && ctx.Err() == nil {
		return 0, fmt.Errorf("reference loop: %w", *err)
	}
	return float64(n.Load()) / time.Duration(tb.nano()-start).Seconds(), nil
}
