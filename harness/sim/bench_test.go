package sim_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/stores"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

// live is a go-redis INCR loop of 50 goroutines on a real server, in commands
// per second.
func live(b *testing.B, d time.Duration) float64 {
	server := storetest.Redis(b)
	c := server.Client(stores.ClientOptions{PoolSize: 50})
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

// BenchmarkSimulated compares the commands that a simulation carries out, with
// everything around them, with what a live loop of INCR reaches just before and
// just after. The promise is 5 times for counters and twice for scripts.
func BenchmarkSimulated(b *testing.B) {
	for _, strategy := range []string{"incr-expire", "incr-expire-atomic"} {
		b.Run(strategy, func(b *testing.B) {
			const requests = 500_000
			before := live(b, 300*time.Millisecond)
			var took int64
			for b.Loop() {
				cfg := config(b, strategy, "agent-api", "steady")
				cfg.Requests, cfg.Rate, cfg.Stream.Subjects, cfg.Every, cfg.Duration = requests, 5_000, 10_000, -1, time.Hour
				start := clock.Nano()
				r, err := sim.Run(b.Context(), cfg)
				took += clock.Nano() - start
				if err != nil || r.Runs[0].Issued != requests {
					b.Fatalf("%v: %+v", err, r.Runs[0])
				}
			}
			perS := float64(requests) * float64(b.N) / (float64(took) / 1e9)
			base := (before + live(b, 300*time.Millisecond)) / 2
			b.ReportMetric(perS, "decisions/s")
			b.ReportMetric(base, "live-INCR/s")
			b.ReportMetric(perS/base, "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
