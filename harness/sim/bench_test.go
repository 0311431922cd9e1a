package sim_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/clock"
)

// BenchmarkSimulated is whole decisions: workload, strategy, stores, histograms
// and the oracle, next to what a live loop of INCR reaches just before and after.
func BenchmarkSimulated(b *testing.B) {
	for _, strategy := range []string{"incr-expire", "incr-expire-atomic"} {
		b.Run(strategy, func(b *testing.B) {
			const requests = 500_000
			before := sim.INCRs(b, 300*time.Millisecond)
			var took int64
			for b.Loop() {
				cfg := config(b, strategy, "agent-api", "steady")
				cfg.Requests, cfg.Load, cfg.Every, cfg.Duration = requests, harness.OpenAt(5_000), -1, time.Hour
				cfg.Stream.Set("subjects", 10_000)
				start := clock.Nano()
				r, err := sim.Run(b.Context(), cfg)
				took += clock.Nano() - start
				if err != nil || r.Runs[0].Issued != requests {
					b.Fatalf("%v: %+v", err, r.Runs[0])
				}
			}
			perS := float64(requests) * float64(b.N) / (float64(took) / 1e9)
			base := (before + sim.INCRs(b, 300*time.Millisecond)) / 2
			b.ReportMetric(perS, "decisions/s")
			b.ReportMetric(base, "live-INCR/s")
			b.ReportMetric(perS/base, "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
