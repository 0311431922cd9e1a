package measure

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	redisstore "github.com/quotabench/quotabench/stores/redis"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
	"github.com/quotabench/quotabench/workloads"
)

// What the instrument itself costs. Absolute times say nothing on a shared
// machine, so each benchmark measures both sides in turn, in one run, and
// reports the ratio.

const instrumentWorkers = 50

// pairs runs a and b in turn, n times, and returns the median of a's by b's.
func pairs(n int, a, b func() float64) float64 {
	ratios := make([]float64, n)
	for i := range ratios {
		if i%2 == 0 {
			x := a()
			ratios[i] = x / b()
		} else {
			y := b()
			ratios[i] = a() / y
		}
	}
	slices.Sort(ratios)
	return (ratios[(n-1)/2] + ratios[n/2]) / 2
}

// perOp runs f on every worker until each has done its share of n, and returns
// the processor time per operation in nanoseconds: other programs on the machine
// do not count.
func perOp(n int, f func(ops int)) float64 {
	start := clock.Processor()
	var wg sync.WaitGroup
	for range instrumentWorkers {
		wg.Go(func() { f(n / instrumentWorkers) })
	}
	wg.Wait()
	return float64(clock.Processor()-start) / float64(n)
}

var sink atomic.Int64

// timeOfDay is what a program pays for the time of day. The clock of a run is
// cheaper: it asks the system once and not twice.
func timeOfDay() time.Time { return time.Now() } //nolint:forbidigo // the yardstick itself

// BenchmarkDecision prices a decision of the strategy that does nothing, with
// the recorder, the history and the online oracle, against two pairs of clock
// readings by as many goroutines.
func BenchmarkDecision(b *testing.B) {
	const n = 2_000_000 // enough for what is made on first use not to count
	hot, err := workloads.Lookup("hot-key")
	if err != nil {
		b.Fatal(err)
	}
	policy := quota.Policy{Name: "p", Limit: 50, Unit: "units"}
	stream, _, err := hot.New(workloads.Params{Seed: 1, Policy: &policy})
	if err != nil {
		b.Fatal(err)
	}
	meta, err := strategies.Lookup("unlimited")
	if err != nil {
		b.Fatal(err)
	}
	s, err := meta.Open(b.Context(), strategies.Env{Clock: wallTime.clock})
	if err != nil {
		b.Fatal(err)
	}
	var allocs uint64
	newDrive := func() *drive {
		d := &drive{
			timebase: wallTime, instances: []strategies.Strategy{s}, stream: stream, policy: &policy, workers: instrumentWorkers,
			requests: n, online: true, deadline: bounds.DecisionTimeout, rec: newRecorder(instrumentWorkers),
			history: instrumentHistory(b, n), subjects: newSubjects(stream, n/100, n/100),
		}
		return d
	}
	decision := func() float64 {
		d := newDrive()
		before := heapAllocs()
		start := clock.Processor()
		d.run(context.Background())
		took := float64(clock.Processor()-start) / n
		allocs = heapAllocs() - before
		return took
	}
	readings := func() float64 {
		return perOp(n, func(ops int) {
			var sum int64
			for range ops {
				a := timeOfDay()
				c := timeOfDay()
				d := timeOfDay()
				e := timeOfDay()
				sum += int64(c.Sub(a)) + int64(e.Sub(d))
			}
			sink.Add(sum)
		})
	}
	var ratio float64
	for b.Loop() {
		ratio = pairs(10, decision, readings)
	}
	b.ReportMetric(ratio, "x-two-clock-pairs")
	b.ReportMetric(float64(allocs)/n, "allocs/decision")
}

// BenchmarkIncrExpireOverBareLoop compares decisions of incr-expire through the
// whole harness with a bare INCR loop on the same server: on keys like the
// strategy's, which is what the client's side costs, and on one short key that
// never expires, which spares the server some work as well.
func BenchmarkIncrExpireOverBareLoop(b *testing.B) {
	redis := storetest.Redis(b)
	cfg := instrumentConfig(b, redis)
	// Few short pairs show that it works, and give no figure to rely on.
	n := testenv.Pick(4, 20)
	d := testenv.Pick(250*time.Millisecond, time.Second)
	decisions := func() float64 { return decisionsPerSecond(b, cfg, d) }
	var keys, one float64
	for b.Loop() {
		keys = pairs(n, decisions, func() float64 { return bareLoop(b, redis, d) })
		one = pairs(n, decisions, func() float64 {
			x, err := referenceFor(b.Context(), &cfg, redis, wallTime, "bare", int64(d))
			if err != nil {
				b.Fatal(err)
			}
			return x.perS
		})
	}
	b.ReportMetric(keys, "x-bare-incr-loop")
	b.ReportMetric(one, "x-one-key-loop")
}

// bareLoop is INCR by as many goroutines, on keys of a length, a value and a time
// to live like those of link-hits, a fresh one about every 200 commands. It
// returns the commands per second.
func bareLoop(b *testing.B, redis *redisstore.Store, d time.Duration) float64 {
	b.Helper()
	const prefix = "quotabench:bare-loop:"
	ctx := b.Context()
	c := redis.Client(redisstore.ClientOptions{Pool: instrumentWorkers, Meter: new(stores.Meter)})
	defer c.Close()                                            //nolint:errcheck // nothing was written that matters
	defer redis.WipePrefix(context.WithoutCancel(ctx), prefix) //nolint:errcheck // the test's server ends soon
	keys := make([]string, 4096)
	pipe := c.Pipeline()
	for i := range keys {
		keys[i] = prefix + "users:hot-" + strconv.Itoa(i) + ":link-hits:2026-11"
		pipe.Set(ctx, keys[i], 9_900, 240*time.Hour)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		b.Fatal(err)
	}
	pass := func(d time.Duration) float64 {
		var n atomic.Int64
		var failed atomic.Bool
		start := wallTime.nano()
		end := start + int64(d)
		var wg sync.WaitGroup
		for range instrumentWorkers {
			wg.Go(func() {
				i := 0
				for ; wallTime.nano() < end; i++ {
					if c.Incr(ctx, keys[i/4%len(keys)]).Err() != nil {
						failed.Store(true)
						return
					}
				}
				n.Add(int64(i))
			})
		}
		wg.Wait()
		if failed.Load() {
			b.Fatal("an INCR of the bare loop failed")
		}
		return float64(n.Load()) / time.Duration(wallTime.nano()-start).Seconds()
	}
	pass(d / 5) // connections
	return pass(d)
}

// BenchmarkLive is the cost of recording a decision if figures can be asked for, with a
// scrape every few milliseconds, divided by the cost if they cannot.
func BenchmarkLive(b *testing.B) {
	record := func(watched bool) float64 {
		rec := newRecorder(instrumentWorkers)
		if watched {
			rec.watch()
		}
		tier := rec.tiers.index(quota.TierRedis)
		var worker atomic.Int64
		return perOp(1_000_000, func(ops int) {
			id := int(worker.Add(1))
			s := rec.stripe(id)
			for i := range ops {
				rec.record(s, oracle.Admitted, tier, false, int64(1_000+i%50_000))
				if watched && id == 1 && i%10_000 == 0 {
					rec.live()
				}
			}
		})
	}
	var ratio, ns float64
	for b.Loop() {
		ratio = pairs(6, func() float64 { ns = record(true); return ns }, func() float64 { return record(false) })
	}
	b.ReportMetric(ratio, "x-without")
	b.ReportMetric(ns, "ns/decision")
}

func instrumentConfig(b *testing.B, redis *redisstore.Store) Config {
	b.Helper()
	plan, err := harness.NewPlan("incr-expire", "link-hits", "hot-key")
	if err != nil {
		b.Fatal(err)
	}
	plan.Workers = instrumentWorkers
	plan.Seed = 1
	plan.Stores = setOf(b, redis)
	return Config{Plan: plan, Rounds: 1, NoReference: true}
}

func decisionsPerSecond(b *testing.B, cfg Config, d time.Duration) float64 {
	b.Helper()
	cfg.Duration = d
	report, err := Measure(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	r := report.Runs[0]
	if r.Errors > 0 || r.Issued == 0 {
		b.Fatalf("%d errors in %d requests: %s", r.Errors, r.Issued, r.FirstError)
	}
	return r.ThroughputPerS
}

// BenchmarkPacer releases 10,000 requests a second and compares their median
// lateness with that of time.Sleep, and says how much of a core it takes.
func BenchmarkPacer(b *testing.B) {
	const (
		n        = 5_000
		interval = 100_000
	)
	lateness := func(wait func(int64)) float64 {
		h := results.NewHistogram()
		start := wallTime.nano() + 1_000_000
		for i := range int64(n) {
			at := start + i*interval
			wait(at)
			h.Record(wallTime.nano() - at)
		}
		return float64(h.Quantile(0.5))
	}
	var cores, ratio float64
	for b.Loop() {
		ratio = pairs(4, func() float64 {
			p := newPacer(wallTime.nano, 10_000)
			defer p.close()
			before := clock.Processor()
			start := wallTime.nano()
			l := lateness(p.wait)
			cores = float64(clock.Processor()-before) / float64(wallTime.nano()-start)
			return l
		}, func() float64 {
			return lateness(func(at int64) {
				if d := at - wallTime.nano(); d > 0 {
					time.Sleep(time.Duration(d))
				}
			})
		})
	}
	b.ReportMetric(ratio, "x-sleep-lateness")
	b.ReportMetric(cores, "cores")
}

func instrumentHistory(b *testing.B, events int64) *oracle.History {
	h := oracle.NewHistory(oracle.HistoryOptions{Workers: instrumentWorkers, Limit: events, Dir: b.TempDir()})
	b.Cleanup(func() {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	})
	return h
}
