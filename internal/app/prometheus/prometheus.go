// Package prometheus shows a measurement or a simulation to Prometheus while it goes on, under
// the names of ADR-005 with underscores for its dots.
//
// The text format is written here: it takes a page, and the client library for
// Prometheus would bring eight modules for it.
package prometheus

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Metric is one that is served.
type Metric struct {
	// Name as Prometheus has it.
	Name string
	// Type is "histogram", "gauge" or "counter".
	Type string
	// Help says what it is in a measurement, in one line, and Virtual in a simulation; empty if that does
	// not serve it.
	Help, Virtual string
}

// declarations are all metrics, in the order in which they are served.
//
//go:embed metrics.json
var declarations []byte

var declared = sync.OnceValue(func() (all []Metric) {
	if err := json.Unmarshal(declarations, &all); err != nil {
		panic("metrics.json: " + err.Error())
	}
	return all
})

// read are the metrics of one kind of figures, each with how it is read from them.
type read[F any] map[string]func(w *writer, f *F)

// Source renders all metrics as they are at the moment, in Prometheus' text format,
// version 0.0.4.
type Source func() []byte

// Measured is the source of a measurement. Its samples have the labels strategy and loop.
func Measured(live *measure.Live) Source {
	return func() []byte { return Text(live.Figures()) }
}

// Simulated is the source of a simulation. Its samples have the label time="virtual", too:
// their seconds are those of virtual time, and their latencies modelled.
func Simulated(live *sim.Live) Source {
	return func() []byte {
		return text(simulated, func(metric *Metric) string {
			return metric.Virtual
		}, live.Figures(), func(figures *sim.LiveFigures) []string {
			return []string{"strategy", figures.Strategy, "loop", figures.Loop, "time", "virtual"}
		})
	}
}

// Text renders the figures of a measurement.
func Text(all []measure.LiveFigures) []byte {
	labels := func(figures *measure.LiveFigures) []string {
		return []string{"strategy", figures.Strategy, "loop", figures.Loop}
	}
	return text(measured, func(metric *Metric) string { return metric.Help }, all, labels)
}

func text[F any](metrics read[F], help func(*Metric) string, all []F, labels func(*F) []string) []byte {
	var w writer
	for _, metric := range declared() {
		said := help(&metric)
		if said == "" {
			continue
		}
		fmt.Fprintf(&w.buffer, "# HELP %s %s\n# TYPE %s %s\n", metric.Name, said, metric.Name, metric.Type)
		w.name = metric.Name
		for i := range all {
			w.labels = labels(&all[i])
			metrics[metric.Name](&w, &all[i])
		}
	}
	return w.buffer.Bytes()
}

// measured are the metrics that a measurement serves.
var measured = read[measure.LiveFigures]{
	"quota_check_duration_us":          func(w *writer, figures *measure.LiveFigures) { w.latencies(figures.Latencies) },
	"quota_cache_hit_rate":             func(w *writer, figures *measure.LiveFigures) { w.hitRates(figures.Latencies) },
	"quota_throughput_checks_per_sec":  func(w *writer, figures *measure.LiveFigures) { w.put("", figures.PerS) },
	"quota_bloom_false_positive_rate":  func(w *writer, figures *measure.LiveFigures) { w.falsePositives(meter(figures)) },
	"quota_enforcement_violations":     violations,
	"quota_sync_lag_seconds":           lag,
	"quota_drift_percentage":           drift,
	"quota_cache_unavailable":          unavailable,
	"quota_fallback_count":             func(w *writer, figures *measure.LiveFigures) { w.fallbacks(figures.Latencies) },
	"quotabench_certain_leak_units":    certainLeak,
	"quotabench_certain_false_rejects": certainFalseRejects,
	"quotabench_sync_period_seconds":   syncPeriod,
	"quotabench_round": func(w *writer, figures *measure.LiveFigures) {
		w.put("", float64(figures.Round))
	},
	"quotabench_running": func(w *writer, figures *measure.LiveFigures) { w.is(figures.Running) },
}

// writer writes samples of one metric.
type writer struct {
	buffer bytes.Buffer
	name   string
	labels []string // of all samples, names and values in turn
}

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// put writes one sample with further labels.
func (w *writer) put(suffix string, value float64, labels ...string) {
	w.buffer.WriteString(w.name + suffix)
	for i, all := 0, slices.Concat(w.labels, labels); i < len(all); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		fmt.Fprintf(&w.buffer, `%s%s="%s"`, sep, all[i], escaped.Replace(strings.ToValidUTF8(all[i+1], "?")))
	}
	w.buffer.WriteString("} " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// is writes 1 for what is so, and 0 for what is not.
func (w *writer) is(so bool) {
	value := 0.0
	if so {
		value = 1
	}
	w.put("", value)
}

func (w *writer) latencies(all []stat.LiveLatency) {
	for i := range all {
		latency := &all[i]
		labels := []string{"layer", cmp.Or(latency.Tier, "none"), "outcome", latency.Outcome}
		total := int64(0)
		for k, n := range latency.UpTo {
			total += n
			w.put("_bucket", float64(total),
				append(labels, "le", strconv.FormatFloat(float64(stat.LiveBounds[k])/1e3, 'f', -1, 64))...)
		}
		w.put("_bucket", float64(latency.Count), append(labels, "le", "+Inf")...)
		w.put("_sum", float64(latency.SumNS)/1e3, labels...)
		w.put("_count", float64(latency.Count), labels...)
	}
}

// layer is a tier with the decisions that were made there.
type layer struct {
	name string
	n    int64
	// degraded of them were made without a store that was to decide.
	degraded int64
}

// order of the layers that a request may pass, the first one first.
var order = []quota.Tier{quota.TierProcess, quota.TierFilter, quota.TierRedis, quota.TierPostgres, quota.TierModel}

// decisions are made at layers.
type decisions struct {
	// layers that made any, in the order in which requests pass them.
	layers []layer
	// alone counts those that the process made after all layers, since a store was away.
	alone int64
	all   int64
}

// decided sorts decisions by the layers that made them.
func decided(latencies []stat.LiveLatency) (out decisions) {
	for _, latency := range latencies {
		if latency.Outcome == "error" {
			continue
		}
		out.all += latency.Count
		name := latency.Tier
		made := layer{name: name, n: latency.Count, degraded: latency.Degraded}
		if name == string(quota.TierProcess) {
			out.alone += latency.Degraded
			made.n -= latency.Degraded
			made.degraded = 0
		}
		if made.n == 0 {
			continue
		}
		sum, _ := collect.In(&out.layers, layer{name: name}, func(x layer) bool { return x.name == name })
		sum.n += made.n
		sum.degraded += made.degraded
	}
	rank := func(x layer) int {
		if i := slices.Index(order, quota.Tier(x.name)); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(out.layers, func(a, b layer) int { return rank(a) - rank(b) })
	return out
}

// hitRates: of the decisions that reached a layer, the share that it made.
func (w *writer) hitRates(latencies []stat.LiveLatency) {
	decisions := decided(latencies)
	reached := decisions.all
	for _, layer := range decisions.layers {
		w.put("", float64(layer.n)/float64(reached), "layer", cmp.Or(layer.name, "none"))
		reached -= layer.n
	}
}

// fallbacks: what was decided at a layer was left to it by all layers before.
func (w *writer) fallbacks(latencies []stat.LiveLatency) {
	decisions := decided(latencies)
	passed := decisions.layers
	if decisions.alone > 0 {
		passed = append(passed, layer{name: string(quota.TierProcess), n: decisions.alone})
	}
	left := decisions.all
	for i := 1; i < len(passed); i++ {
		left -= passed[i-1].n
		w.put("", float64(left), "from", cmp.Or(passed[i-1].name, "none"), "to", cmp.Or(passed[i].name, "none"))
	}
}

// unknownStore stands for a store that no decision names.
const unknownStore = "store"

// unavailable counts decisions without a store by the last store that was asked for them, and requests that failed for
// lack of some store.
func (w *writer) unavailable(latencies []stat.LiveLatency, failed int64) {
	decisions := decided(latencies)
	counts := []layer{{name: unknownStore, n: failed}}
	count := func(store string, n int64) {
		sum, _ := collect.In(&counts, layer{name: store}, func(x layer) bool { return x.name == store })
		sum.n += n
	}
	asked := ""
	for _, layer := range decisions.layers {
		if name := quota.Tier(layer.name); name == quota.TierProcess || name == quota.TierFilter {
			continue
		}
		// The first store has decided and could not charge.
		count(cmp.Or(asked, layer.name), layer.degraded)
		asked = layer.name
	}
	count(cmp.Or(asked, unknownStore), decisions.alone)
	for _, layer := range counts {
		w.put("", float64(layer.n), "layer", layer.name)
	}
}

// last is the last run that was judged; nil if there is none.
func last(figures *measure.LiveFigures) *results.Run {
	if n := len(figures.Judged); n > 0 {
		return &figures.Judged[n-1]
	}
	return nil
}

// meter has the strategy's own figures of the run under way, or of the last one.
func meter(figures *measure.LiveFigures) []results.Measure {
	if run := last(figures); run != nil && !figures.Running {
		return run.Meter
	}
	return figures.Meter
}

func (w *writer) falsePositives(meter []results.Measure) {
	hits := int64(0)
	wrong := int64(0)
	ok := false
	for _, m := range meter {
		switch codes.Metric(m.Metric) {
		case codes.MetricFilterHits:
			hits = m.Value
			ok = true
		case codes.MetricFalsePositives:
			wrong = m.Value
		}
	}
	if ok {
		w.put("", float64(wrong)/float64(max(hits, wrong, 1)))
	}
}

func certainLeak(w *writer, figures *measure.LiveFigures) {
	if figures.Certain != nil {
		w.put("", float64(figures.Certain.LeakUnits))
	}
}

func certainFalseRejects(w *writer, figures *measure.LiveFigures) {
	if figures.Certain != nil {
		w.put("", float64(figures.Certain.FalseRejects))
	}
}

func syncPeriod(w *writer, figures *measure.LiveFigures) {
	if figures.Lag > 0 {
		w.put("", figures.Lag.Seconds())
	}
}

func violations(w *writer, figures *measure.LiveFigures) {
	total := int64(0)
	for i := range figures.Judged {
		if run := &figures.Judged[i]; run.Audit.Valid {
			total += run.Leak.Units
		}
	}
	w.put("", float64(total))
}

func unavailable(w *writer, figures *measure.LiveFigures) {
	failed := int64(0)
	for i := range figures.Judged {
		if kinds := figures.Judged[i].ErrorKinds; kinds != nil {
			failed += kinds.Store
		}
	}
	w.unavailable(figures.Latencies, failed)
}

func tiers(figures *measure.LiveFigures, at string) (out []results.TierDrift) {
	if run := last(figures); run != nil && run.Drift != nil && run.Audit.Valid {
		for _, drift := range run.Drift.Tiers {
			if drift.At == at && drift.Readings > 0 {
				out = append(out, drift)
			}
		}
	}
	return out
}

func drift(w *writer, figures *measure.LiveFigures) {
	for _, drift := range tiers(figures, "rest") {
		w.put("", drift.PctOfLimit, "layer", drift.Tier)
	}
}

func lag(w *writer, figures *measure.LiveFigures) {
	for _, m := range meter(figures) {
		if unit, ok := map[string]float64{"us": 1e6, "ns": 1e9}[m.Unit]; ok && m.Metric == string(codes.MetricQueueLag) {
			w.put("", float64(m.Value)/unit, "layer", "queue")
		}
	}
	for _, drift := range tiers(figures, "after-jobs") {
		w.put("", float64(drift.SettledNS)/1e9, "layer", drift.Tier)
	}
}

// simulated are the metrics that a simulation serves.
var simulated = read[sim.LiveFigures]{
	"quota_check_duration_us":         func(w *writer, figures *sim.LiveFigures) { w.latencies(figures.Latencies) },
	"quota_cache_hit_rate":            func(w *writer, figures *sim.LiveFigures) { w.hitRates(figures.Latencies) },
	"quota_throughput_checks_per_sec": simThroughput,
	"quota_bloom_false_positive_rate": func(w *writer, figures *sim.LiveFigures) { w.falsePositives(figures.Meter) },
	"quota_enforcement_violations":    simViolations,
	"quota_sync_lag_seconds":          simLag,
	"quota_drift_percentage":          simDrift,
	"quota_cache_unavailable": func(w *writer, figures *sim.LiveFigures) {
		w.unavailable(figures.Latencies, figures.StoreErrors)
	},
	"quota_fallback_count": func(w *writer, figures *sim.LiveFigures) { w.fallbacks(figures.Latencies) },
	"quotabench_certain_false_rejects": func(w *writer, figures *sim.LiveFigures) {
		w.put("", float64(figures.Sample.FalseRejects))
	},
	"quotabench_virtual_seconds": func(w *writer, figures *sim.LiveFigures) {
		w.put("", float64(figures.Sample.AtNS)/1e9)
	},
	"quotabench_running": func(w *writer, figures *sim.LiveFigures) { w.is(figures.Running) },
}

func simThroughput(w *writer, figures *sim.LiveFigures) {
	w.put("", float64(figures.Sample.Admitted+figures.Sample.Rejected)/(float64(max(figures.Sample.AtNS, 1))/1e9))
}

func simViolations(w *writer, figures *sim.LiveFigures) {
	units := figures.Sample.Leak
	if figures.Judged != nil && figures.Judged.Audit.Valid {
		units = figures.Judged.Leak.Units
	}
	w.put("", float64(units))
}

func simLag(w *writer, figures *sim.LiveFigures) {
	for i, counter := range figures.Sample.Counters {
		if counter.Readings > counter.Unknown {
			w.put("", float64(counter.StalenessNS)/1e9, "layer", figures.Counters[i])
		}
	}
}

func simDrift(w *writer, figures *sim.LiveFigures) {
	for i, counter := range figures.Sample.Counters {
		if counter.Readings > counter.Unknown {
			w.put("", 100*math.Abs(float64(counter.Worst))/float64(figures.Limit), "layer", figures.Counters[i])
		}
	}
}
