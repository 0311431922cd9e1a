package metrics

import (
	"math"

	"github.com/quotabench/quotabench/harness/sim"
)

func simulated() []metric[sim.LiveFigures] {
	return []metric[sim.LiveFigures]{
		{Metric{"quota_check_duration_us", "histogram", "Modelled service time of decisions in microseconds of virtual " +
			"time, by the layer that decided."}, func(w *writer, f *sim.LiveFigures) {
			w.latencies(f.Latencies)
		}},
		{Metric{"quota_cache_hit_rate", "gauge", "Share of all decisions that were made at the layer, 0 to 1."},
			func(w *writer, f *sim.LiveFigures) {
				w.hitRates(f.Latencies)
			}},
		{Metric{"quota_throughput_checks_per_sec", "gauge", "Decisions per second of virtual time since the start."}, simThroughput},
		{Metric{"quota_bloom_false_positive_rate", "gauge", "Share of the filter's hits that were wrong so far, 0 to 1; " +
			"absent where there is no filter."}, func(w *writer, f *sim.LiveFigures) {
			w.falsePositives(f.Meter)
		}},
		{Metric{"quota_enforcement_violations", "counter", "Units that were certainly admitted over the limit so far; " +
			"those of the verdict once the run was judged."}, simViolations},
		{Metric{"quota_sync_lag_seconds", "gauge", "Longest time, in virtual seconds, since a counter of the layer was " +
			"right, at the last sample of tracked subjects."}, simLag},
		{Metric{"quota_drift_percentage", "gauge", "Worst counter of the layer at the last sample of tracked subjects, " +
			"against what callers were told, in percent of the limit, beyond what requests in flight explain."}, simDrift},
		{Metric{"quota_cache_unavailable", "counter", "Decisions without the store and requests that failed for " +
			"lack of it so far."}, func(w *writer, f *sim.LiveFigures) {
			w.put("", float64(f.Degraded+f.StoreErrors), "layer", "store")
		}},
		{Metric{"quota_fallback_count", "counter", "Decisions that one layer left to the next."}, func(w *writer, f *sim.LiveFigures) {
			w.fallbacks(f.Latencies)
		}},
		{Metric{"quotabench_certain_false_rejects", "gauge", "Requests that were certainly rejected wrongly so far."},
			func(w *writer, f *sim.LiveFigures) {
				w.put("", float64(f.Sample.FalseRejects))
			}},
		{Metric{"quotabench_virtual_seconds", "gauge", "Virtual time since the start."}, func(w *writer, f *sim.LiveFigures) {
			w.put("", float64(f.Sample.AtNS)/1e9)
		}},
		{Metric{"quotabench_running", "gauge", "1 while the strategy is simulated, else 0."}, func(w *writer, f *sim.LiveFigures) {
			w.is(f.Running)
		}},
	}
}

func simulatedText(all []sim.LiveFigures) []byte {
	return text(simulated(), all, func(f *sim.LiveFigures) []string {
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
