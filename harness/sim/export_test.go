package sim

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	redisstore "github.com/quotabench/quotabench/stores/redis"
)

// INCRs is a go-redis INCR loop of 50 goroutines on a real server, in commands
// per second.
func INCRs(b *testing.B, d time.Duration) float64 {
	server := storetest.Redis(b)
	c := server.Client(redisstore.ClientOptions{Pool: 50})
	defer c.Close() //nolint:errcheck // nothing was written that matters
	key := storetest.Prefix(b) + "n"
	var n atomic.Int64
	start := clock.Nano()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for clock.Nano()-start < int64(d) {
				if c.Incr(context.Background(), key).Err() != nil {
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / (float64(clock.Nano()-start) / 1e9)
}

// Placed is the instance that gets request i of one subject.
func Placed(c *Config, i uint64) int {
	t := c.Topology
	if err := t.complete(c.Instances); err != nil {
		panic(err)
	}
	return t.assign(seed.Stream(c.Seed, seed.Placement), i, 0)
}
