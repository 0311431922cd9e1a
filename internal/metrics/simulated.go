package metrics

import (
	"math"

	"github.com/quotabench/quotabench/harness/sim"
)

// simulated are the metrics that a simulation serves.
var simulated = read[sim.LiveFigures]{
	"quota_check_duration_us":         func(w *writer, f *sim.LiveFigures) { w.latencies(f.Latencies) },
	"quota_cache_hit_rate":            func(w *writer, f *sim.LiveFigures) { w.hitRates(f.Latencies) },
	"quota_throughput_checks_per_sec": simThroughput,
	"quota_bloom_false_positive_rate": func(w *writer, f *sim.LiveFigures) { w.falsePositives(f.Meter) },
	"quota_enforcement_violations":    simViolations,
	"quota_sync_lag_seconds":          simLag,
	"quota_drift_percentage":          simDrift,
	"quota_cache_unavailable": func(w *writer, f *sim.LiveFigures) {
		w.put("", float64(f.Degraded+f.StoreErrors), "layer", "store")
	},
	"quota_fallback_count":             func(w *writer, f *sim.LiveFigures) { w.fallbacks(f.Latencies) },
	"quotabench_certain_false_rejects": func(w *writer, f *sim.LiveFigures) { w.put("", float64(f.Sample.FalseRejects)) },
	"quotabench_virtual_seconds":       func(w *writer, f *sim.LiveFigures) { w.put("", float64(f.Sample.AtNS)/1e9) },
	"quotabench_running":               func(w *writer, f *sim.LiveFigures) { w.is(f.Running) },
}

func simulatedText(all []sim.LiveFigures) []byte {
	return text(simulated, func(m *Metric) string { return m.Virtual }, all, func(f *sim.LiveFigures) []string {
		return []string{"strategy", f.Strategy, "loop", f.Loop, "time", "virtual"}
	})
}

func simThroughput(w *writer, f *sim.LiveFigures) {
	w.put("", float64(f.Sample.Admitted+f.Sample.Rejected)/(float64(max(f.Sample.AtNS, 1))/1e9))
}

func simViolations(w *writer, f *sim.LiveFigures) {
	units := f.Sample.Leak
	if f.Judged != nil && f.Judged.Audit.Valid {
		units = f.Judged.Leak.Units
	}
	w.put("", float64(units))
}

func simLag(w *writer, f *sim.LiveFigures) {
	for i, c := range f.Sample.Counters {
		if c.Readings > c.Unknown {
			w.put("", float64(c.StalenessNS)/1e9, "layer", f.Counters[i])
		}
	}
}

func simDrift(w *writer, f *sim.LiveFigures) {
	for i, c := range f.Sample.Counters {
		if c.Readings > c.Unknown {
			w.put("", 100*math.Abs(float64(c.Worst))/float64(f.Limit), "layer", f.Counters[i])
		}
	}
}
