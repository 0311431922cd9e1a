package measure

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/stores"
)

// referenceDuration is how long each round's reference loop runs.
const referenceDuration = int64(150 * time.Millisecond)

// referenceFor measures a bare client's INCR loop on the run's Redis: as many
// goroutines and connections as the strategies get, one key, nothing else, for the
// given nanoseconds.
func referenceFor(ctx context.Context, cfg *Config, tb *timebase, name string, length int64) (loop, error) {
	var meter stores.Meter
	c := cfg.Redis.Client(stores.ClientOptions{PoolSize: cfg.redisPool(), MaxRetries: cfg.ClientRetries, Meter: &meter})
	defer c.Close() //nolint:errcheck // nothing was written that matters
	scope := stores.Scope(name)
	key := scope.Prefix() + "reference"
	defer cfg.Redis.Wipe(context.WithoutCancel(ctx), scope) //nolint:errcheck // the run's own wipe reports a store that is gone

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
	before, err := cfg.Redis.Stats(ctx)
	if err != nil {
		return loop{}, fmt.Errorf("reference loop: %w", err)
	}
	sent := meter.Snapshot()
	start := tb.nano()
	pass(length)
	took := time.Duration(tb.nano() - start)
	if err := failed.Load(); err != nil && ctx.Err() == nil {
		return loop{}, fmt.Errorf("reference loop: %w", *err)
	}
	out := loop{perS: float64(n.Load()) / took.Seconds()}
	if after, err := cfg.Redis.Stats(ctx); err == nil && before.Known {
		ours := meter.Snapshot().Sub(sent)
		// One of the two questions about statistics is among them.
		out.foreign = float64(after.Commands-before.Commands-1-ours.Commands-ours.SetupCommands) / float64(max(ours.Commands, 1))
	}
	return out, nil
}

// loop is what a reference loop found.
type loop struct {
	perS float64 // commands per second
	// foreign is the share, relative to the loop's own commands, of commands that
	// the server processed meanwhile for somebody else.
	foreign float64
}
