package sim

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/fakeredis"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/strategies"
)

// script is of the size of those that strategies have.
var script = redis.NewScript(`
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
if used + tonumber(ARGV[1]) > tonumber(ARGV[2]) then return {0, used} end
return {1, redis.call('INCRBY', KEYS[1], ARGV[1])}`)

// BenchmarkCommands is what 50 callers of a simulated Redis reach: commands with
// request leg, queue, service, reply leg and trace, but no strategy or oracle,
// next to what a live loop of INCR reaches just before and after. The promise is
// 5 times that for counters and twice for scripts, on a machine that is quiet: a
// simulation is one thread, and the loop takes whatever it can get.
func BenchmarkCommands(b *testing.B) {
	for name, call := range map[string]func(context.Context, redis.UniversalClient) error{
		"incr": func(ctx context.Context, c redis.UniversalClient) error { return c.Incr(ctx, "n").Err() },
		"script": func(ctx context.Context, c redis.UniversalClient) error {
			return script.Run(ctx, c, []string{"n"}, 1, 1<<40).Err()
		},
	} {
		b.Run(name, func(b *testing.B) {
			cfg := Config{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			n := defaultRedis()
			cfg.RedisNet = &n
			cfg.PostgresNet = &n
			if err := cfg.Topology.complete(1); err != nil {
				b.Fatal(err)
			}
			hash := newStepHash()
			w := newNetwork(&cfg, hash, nil, nil)
			s := w.scheduler
			meta := &strategies.Meta{Name: "none", Open: func(context.Context, strategies.Env) (strategies.Strategy, error) {
				return nil, nil
			}}
			st, err := openSite(b.Context(), &cfg, strategies.Selection{Meta: meta}, w, func() (fakeredis.Redis, error) {
				return fakeredis.New(), nil
			})
			if err != nil {
				b.Fatal(err)
			}
			c, err := st.client(b.Context(), st.tables[0], &route{server: newServer(n)})
			if err != nil {
				b.Fatal(err)
			}
			left := 0
			for range 50 {
				s.Go("caller", func(ctx context.Context) {
					for left > 0 {
						left--
						if err := call(ctx, c); err != nil {
							b.Error(err)
						}
					}
				})
			}
			left = b.N
			before := INCRs(b, 300*time.Millisecond)
			b.ReportAllocs()
			b.ResetTimer()
			began := clock.Nano()
			if err := s.Simulate(cfg.Start.Add(1<<60), st.network.latency); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			perS := float64(b.N) / (float64(clock.Nano()-began) / 1e9)
			base := (before + INCRs(b, 300*time.Millisecond)) / 2
			b.ReportMetric(perS, "commands/s")
			b.ReportMetric(base, "live-INCR/s")
			b.ReportMetric(perS/base, "ratio")
		})
	}
}
