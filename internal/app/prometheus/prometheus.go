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

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/collect"
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
		return text(simulated, func(m *Metric) string { return m.Virtual }, live.Figures(), func(f *sim.LiveFigures) []string {
			return []string{"strategy", f.Strategy, "loop", f.Loop, "time", "virtual"}
		})
	}
}

// Text renders the figures of a measurement.
func Text(all []measure.LiveFigures) []byte {
	labels := func(f *measure.LiveFigures) []string { return []string{"strategy", f.Strategy, "loop", f.Loop} }
	return text(measured, func(m *Metric) string { return m.Help }, all, labels)
}

func text[F any](metrics read[F], help func(*Metric) string, all []F, labels func(*F) []string) []byte {
	var w writer
	for _, m := range declared() {
		said := help(&m)
		if said == "" {
			continue
		}
		fmt.Fprintf(&w.b, "# HELP %s %s\n# TYPE %s %s\n", m.Name, said, m.Name, m.Type)
		w.name = m.Name
		for i := range all {
			w.labels = labels(&all[i])
			metrics[m.Name](&w, &all[i])
		}
	}
	return w.b.Bytes()
}

// measured are the metrics that a measurement serves.
var measured = read[measure.LiveFigures]{
	"quota_check_duration_us":          func(w *writer, f *measure.LiveFigures) { w.latencies(f.Latencies) },
	"quota_cache_hit_rate":             func(w *writer, f *measure.LiveFigures) { w.hitRates(f.Latencies) },
	"quota_throughput_checks_per_sec":  func(w *writer, f *measure.LiveFigures) { w.put("", f.PerS) },
	"quota_bloom_false_positive_rate":  func(w *writer, f *measure.LiveFigures) { w.falsePositives(meter(f)) },
	"quota_enforcement_violations":     violations,
	"quota_sync_lag_seconds":           lag,
	"quota_drift_percentage":           drift,
	"quota_cache_unavailable":          unavailable,
	"quota_fallback_count":             func(w *writer, f *measure.LiveFigures) { w.fallbacks(f.Latencies) },
	"quotabench_certain_leak_units":    certainLeak,
	"quotabench_certain_false_rejects": certainFalseRejects,
	"quotabench_sync_period_seconds":   syncPeriod,
	"quotabench_round":                 func(w *writer, f *measure.LiveFigures) { w.put("", float64(f.Round)) },
	"quotabench_running":               func(w *writer, f *measure.LiveFigures) { w.is(f.Running) },
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

// is writes 1 for what is so, and 0 for what is not.
func (w *writer) is(so bool) {
	v := 0.0
	if so {
		v = 1
	}
	w.put("", v)
}

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
		of, _ := collect.In(&out, layer{name: l.Tier}, func(x layer) bool { return x.name == l.Tier })
		of.n += l.Count
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

func (w *writer) hitRates(latencies []harness.LiveLatency) {
	all, total := layers(latencies)
	for _, l := range all {
		w.put("", float64(l.n)/float64(max(total, 1)), "layer", cmp.Or(l.name, "none"))
	}
}

// fallbacks: what was decided at a layer was left to it by all layers before.
func (w *writer) fallbacks(latencies []harness.LiveLatency) {
	all, left := layers(latencies)
	for i := 1; i < len(all); i++ {
		left -= all[i-1].n
		w.put("", float64(left), "from", cmp.Or(all[i-1].name, "none"), "to", cmp.Or(all[i].name, "none"))
	}
}

// last is the last run that was judged; nil if there is none.
func last(f *measure.LiveFigures) *results.Run {
	if n := len(f.Judged); n > 0 {
		return &f.Judged[n-1]
	}
	return nil
}

// meter has the strategy's own figures of the run under way, or of the last one.
func meter(f *measure.LiveFigures) []results.Measure {
	if r := last(f); r != nil && !f.Running {
		return r.Meter
	}
	return f.Meter
}

func (w *writer) falsePositives(meter []results.Measure) {
	hits := int64(0)
	wrong := int64(0)
	ok := false
	for _, m := range meter {
		switch strategies.MeasureMetric(m.Metric) {
		case strategies.MetricFilterHits:
			hits = m.Value
			ok = true
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
