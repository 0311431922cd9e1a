// Package metrics shows a measurement or a simulation to Prometheus while it goes on, under
// the names of ADR-005 with underscores for its dots.
//
// The text format is written here: it takes a page, and the client library for
// Prometheus would bring eight modules for it.
package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Metric is one that is served.
type Metric struct {
	// Name as Prometheus has it.
	Name string
	// Type is "histogram", "gauge" or "counter".
	Type string
	// Help says what it is, in one line.
	Help string
}

// metric is one with how it is read from figures.
type metric[F any] struct {
	Metric
	sample func(w *writer, f *F)
}

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
	return func() []byte { return simulatedText(live.Figures()) }
}

// Text renders the figures of a measurement.
func Text(all []measure.LiveFigures) []byte {
	return text(measured(), all, func(f *measure.LiveFigures) []string { return []string{"strategy", f.Strategy, "loop", f.Loop} })
}

func text[F any](metrics []metric[F], all []F, labels func(*F) []string) []byte {
	var w writer
	for _, m := range metrics {
		fmt.Fprintf(&w.b, "# HELP %s %s\n# TYPE %s %s\n", m.Name, m.Help, m.Name, m.Type)
		w.name = m.Name
		for i := range all {
			w.labels = labels(&all[i])
			m.sample(&w, &all[i])
		}
	}
	return w.b.Bytes()
}

// measured are the metrics that a measurement serves, in their order. A simulation serves those
// of them that virtual time has, and quotabench_virtual_seconds.
func measured() []metric[measure.LiveFigures] {
	return []metric[measure.LiveFigures]{
		{Metric{"quota_check_duration_us", "histogram", "Service time of decisions in microseconds, by the layer that " +
			"decided; the last few of each worker are not counted yet."}, durations},
		{Metric{"quota_cache_hit_rate", "gauge", "Share of all decisions that were made at the layer, 0 to 1."}, hitRates},
		{Metric{"quota_throughput_checks_per_sec", "gauge", "Decisions per second in the run under way, or the last one."}, throughput},
		{Metric{"quota_bloom_false_positive_rate", "gauge", "Share of the filter's hits that were wrong in the run under " +
			"way so far, or in the last one, 0 to 1; absent where there is no filter."}, falsePositives},
		{Metric{"quota_enforcement_violations", "counter",
			"Units that were certainly admitted over the limit, of all runs that were judged."}, violations},
		{Metric{"quota_sync_lag_seconds", "gauge",
			"How long background work took to bring the layer up to date after the last run; of the layer queue, " +
				"the longest that a charge waited in it so far in the run under way, or in the last one."}, lag},
		{Metric{"quota_drift_percentage", "gauge", "Worst counter of the layer at rest in the last run, " +
			"against what callers were told, in percent of the limit. In mid-run no counter is read."}, drift},
		{Metric{"quota_cache_unavailable", "counter", "Decisions without the store and requests that failed for lack of " +
			"it, of all runs that were judged."}, unavailable},
		{Metric{"quota_fallback_count", "counter", "Decisions that one layer left to the next."}, fallbacks},
		{Metric{"quotabench_certain_leak_units", "gauge",
			"Units that are certainly over the limit by the answers so far, in the run under way or the last one: " +
				"at least these. Absent where only the history can tell: where units are given back, the limit changes, " +
				"or a window is not the same for all subjects."}, certainLeak},
		{Metric{"quotabench_certain_false_rejects", "gauge",
			"Requests that were certainly rejected wrongly by the answers so far, in the run under way or the last one: " +
				"at least these. Absent where the certain leak is."}, certainFalseRejects},
		{Metric{"quotabench_sync_period_seconds", "gauge", "Longest time so far between two rounds of a background job, " +
			"in the run under way or the last one; absent without periodic jobs."}, syncPeriod},
		{Metric{"quotabench_round", "gauge", "Round that is under way, or the last one."}, round},
		{Metric{"quotabench_running", "gauge", "1 while the strategy is measured, else 0."}, func(w *writer, f *measure.LiveFigures) {
			w.is(f.Running)
		}},
	}
}

// writer writes samples of one metric.
type writer struct {
	b      bytes.Buffer
	name   string
	labels []string // of all samples, names and values in turn
}

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// put writes one sample with further labels.
func (w *writer) put(suffix string, value float64, labels ...string) {
	w.b.WriteString(w.name + suffix)
	for i, all := 0, slices.Concat(w.labels, labels); i < len(all); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		fmt.Fprintf(&w.b, `%s%s="%s"`, sep, all[i], escaped.Replace(strings.ToValidUTF8(all[i+1], "?")))
	}
	w.b.WriteString("} " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// is writes 1 for what is so, and 0 elsewhere.
func (w *writer) is(so bool) {
	v := 0.0
	if so {
		v = 1
	}
	w.put("", v)
}

func durations(w *writer, f *measure.LiveFigures) { w.latencies(f.Latencies) }

func (w *writer) latencies(all []harness.LiveLatency) {
	for i := range all {
		l := &all[i]
		labels := []string{"layer", cmp.Or(l.Tier, "none"), "outcome", l.Outcome}
		total := int64(0)
		for k, n := range l.UpTo {
			total += n
			w.put("_bucket", float64(total), append(labels, "le", strconv.FormatFloat(float64(harness.LiveBounds[k])/1e3, 'f', -1, 64))...)
		}
		w.put("_bucket", float64(l.Count), append(labels, "le", "+Inf")...)
		w.put("_sum", float64(l.SumNS)/1e3, labels...)
		w.put("_count", float64(l.Count), labels...)
	}
}

// layer is a tier with the decisions that were made there.
type layer struct {
	name string
	n    int64
}

// order of the layers that a request may pass, the first one first.
var order = []quota.Tier{quota.TierProcess, quota.TierFilter, quota.TierRedis, quota.TierPostgres, quota.TierModel}

// layers are those that decided anything, in their order, and all decisions.
func layers(latencies []harness.LiveLatency) (out []layer, all int64) {
	for _, l := range latencies {
		if l.Outcome == "error" {
			continue
		}
		all += l.Count
		i := slices.IndexFunc(out, func(x layer) bool { return x.name == l.Tier })
		if i < 0 {
			out, i = append(out, layer{name: l.Tier}), len(out)
		}
		out[i].n += l.Count
	}
	rank := func(x layer) int {
		if i := slices.Index(order, quota.Tier(x.name)); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(out, func(a, b layer) int { return rank(a) - rank(b) })
	return out, all
}

func hitRates(w *writer, f *measure.LiveFigures) { w.hitRates(f.Latencies) }

func (w *writer) hitRates(latencies []harness.LiveLatency) {
	all, total := layers(latencies)
	for _, l := range all {
		w.put("", float64(l.n)/float64(max(total, 1)), "layer", cmp.Or(l.name, "none"))
	}
}

func fallbacks(w *writer, f *measure.LiveFigures) { w.fallbacks(f.Latencies) }

// fallbacks: what was decided at a layer was left to it by all layers before.
func (w *writer) fallbacks(latencies []harness.LiveLatency) {
	all, left := layers(latencies)
	for i := 1; i < len(all); i++ {
		left -= all[i-1].n
		w.put("", float64(left), "from", cmp.Or(all[i-1].name, "none"), "to", cmp.Or(all[i].name, "none"))
	}
}

func throughput(w *writer, f *measure.LiveFigures) { w.put("", f.PerS) }

func round(w *writer, f *measure.LiveFigures) { w.put("", float64(f.Round)) }

// last is the last run that was judged; nil if there is none.
func last(f *measure.LiveFigures) *results.Run {
	if n := len(f.Judged); n > 0 {
		return &f.Judged[n-1]
	}
	return nil
}

func falsePositives(w *writer, f *measure.LiveFigures) {
	w.falsePositives(meter(f))
}

// meter has the strategy's own figures of the run under way, or of the last one.
func meter(f *measure.LiveFigures) []results.Measure {
	if r := last(f); r != nil && !f.Running {
		return r.Meter
	}
	return f.Meter
}

func (w *writer) falsePositives(meter []results.Measure) {
	hits, wrong, ok := int64(0), int64(0), false
	for _, m := range meter {
		switch strategies.MeasureMetric(m.Metric) {
		case strategies.MetricFilterHits:
			hits, ok = m.Value, true
		case strategies.MetricFalsePositives:
			wrong = m.Value
		}
	}
	if ok {
		w.put("", float64(wrong)/float64(max(hits, wrong, 1)))
	}
}

func certainLeak(w *writer, f *measure.LiveFigures) {
	if f.Certain != nil {
		w.put("", float64(f.Certain.LeakUnits))
	}
}

func certainFalseRejects(w *writer, f *measure.LiveFigures) {
	if f.Certain != nil {
		w.put("", float64(f.Certain.FalseRejects))
	}
}

func syncPeriod(w *writer, f *measure.LiveFigures) {
	if f.Lag > 0 {
		w.put("", f.Lag.Seconds())
	}
}

func violations(w *writer, f *measure.LiveFigures) {
	total := int64(0)
	for i := range f.Judged {
		if r := &f.Judged[i]; r.Audit.Valid {
			total += r.Leak.Units
		}
	}
	w.put("", float64(total))
}

func unavailable(w *writer, f *measure.LiveFigures) {
	total := int64(0)
	for i := range f.Judged {
		r := &f.Judged[i]
		if total += r.Degraded; r.ErrorKinds != nil {
			total += r.ErrorKinds.Store
		}
	}
	w.put("", float64(total), "layer", "store")
}

func tiers(f *measure.LiveFigures, at string) (out []results.TierDrift) {
	if r := last(f); r != nil && r.Drift != nil && r.Audit.Valid {
		for _, t := range r.Drift.Tiers {
			if t.At == at && t.Readings > 0 {
				out = append(out, t)
			}
		}
	}
	return out
}

func drift(w *writer, f *measure.LiveFigures) {
	for _, t := range tiers(f, "rest") {
		w.put("", t.PctOfLimit, "layer", t.Tier)
	}
}

func lag(w *writer, f *measure.LiveFigures) {
	for _, m := range meter(f) {
		if unit, ok := map[string]float64{"us": 1e6, "ns": 1e9}[m.Unit]; ok && m.Metric == string(strategies.MetricQueueLag) {
			w.put("", float64(m.Value)/unit, "layer", "queue")
		}
	}
	for _, t := range tiers(f, "after-jobs") {
		w.put("", float64(t.SettledNS)/1e9, "layer", t.Tier)
	}
}
