package explore_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	redisstore "github.com/quotabench/quotabench/stores/redis"
)

// BenchmarkSchedules enumerates whole schedules of four clients of check-then-set,
// eight commands each, from opening four instances to the verdict. Beside the
// rate stands what a live loop of INCR by 50 callers reaches just before and
// after, and the ratio of the two. Schedules take one processor, the loop all.
func BenchmarkSchedules(b *testing.B) {
	before := liveINCR(b)
	sel := testkit.Strategy(b, "check-then-set")
	var n int64
	b.ReportAllocs()
	for b.Loop() {
		c, err := explore.Enumerate(b.Context(), sel, explore.Config{Clients: 4, Limit: 4})
		if err != nil {
			b.Fatal(err)
		}
		n += c.Schedules
	}
	besideINCR(b, before, float64(n), "schedules")
}

// BenchmarkSearch is the pruned search of the strategy with the most to search.
func BenchmarkSearch(b *testing.B) {
	before := liveINCR(b)
	var n int64
	b.ReportAllocs()
	for b.Loop() {
		n += run(b, "three-tier", explore.Config{Bounds: explore.Bounds{MaxStates: 5_000}}).Runs
	}
	besideINCR(b, before, float64(n), "runs")
}

func besideINCR(b *testing.B, before, n float64, what string) {
	b.Helper()
	perSecond := n / b.Elapsed().Seconds()
	live := (before + liveINCR(b)) / 2
	b.ReportMetric(perSecond, what+"/s")
	b.ReportMetric(live, "live-INCR/s")
	b.ReportMetric(perSecond/live, "ratio")
}

// liveINCR is what 50 callers of a real server reach in a short while.
func liveINCR(b *testing.B) float64 {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	const callers, lasts = 50, 300 * time.Millisecond
	c := storetest.Redis(b).Client(redisstore.ClientOptions{Pool: callers})
	defer func() { _ = c.Close() }()
	key := storetest.Prefix(b) + "n"
	var total atomic.Int64
	var wg sync.WaitGroup
	began := clock.Nano()
	for range callers {
		wg.Go(func() {
			for clock.Nano()-began < int64(lasts) {
				if err := c.Incr(b.Context(), key).Err(); err != nil {
					b.Error(err)
					return
				}
				total.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(total.Load()) / (float64(clock.Nano()-began) / 1e9)
}
