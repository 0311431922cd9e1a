// Package export writes records in forms that other tools read: Go's benchmark
// format for benchstat, percentiles for the plotter of HdrHistogram, and CSV.
package export

import (
	"cmp"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// Metric is a figure of one round as a Go benchmark reports it.
type Metric struct {
	// Unit with which the benchmark format names it, e.g. "leak-units/op".
	Unit  string
	Value float64
}

// Units are the lines of the benchmark format which say whether more or less of a unit
// is better. Those of times are known.
var Units = func() (lines string) {
	for _, f := range figures.All() {
		if f.Bench != "" && f.Better != figures.Neither && f.Unit != figures.Nanoseconds {
			lines += "Unit " + f.Bench + " better=" + string(f.Better) + "\n"
		}
	}
	return lines
}()

// Metrics are the figures of a round. The leak is always among them. Left out is what
// the strategy promises to be 0, as long as it is: false rejects if a clause allows
// none, and drift if no leak is allowed either.
func Metrics(r *results.Run) []Metric {
	return append(clocked(r), Correctness(r)...)
}

// clocked are those of [Metrics] that are measured on a clock. Only a closed loop has
// a time per decision: an open one has a rate that was asked for. The ratio is the
// throughput divided by that of the reference loop of the same round.
func clocked(r *results.Run) []Metric {
	keys := []string{"time", "ratio", "service.p99", "response.p99", "others"}
	if r.Params.Loop == results.OpenLoop {
		keys = keys[2:]
	}
	return metrics(r, keys...)
}

func metrics(r *results.Run, keys ...string) (out []Metric) {
	for _, k := range keys {
		f := figures.Of(k)
		if v, ok := f.Round(r); ok {
			out = append(out, Metric{f.Bench, v})
		}
	}
	return out
}

// Correctness are those of [Metrics] that need no clock.
func Correctness(r *results.Run) []Metric {
	out := metrics(r, "leak-per-request", "all-commands")
	noRejects := r.FalseRejects.Count == 0 && r.AllowsNone(results.FalseRejectProperty)
	if !noRejects {
		out = append(out, metrics(r, "false-rejects-pct")...)
	}
	exact := noRejects && r.AllowsNone(results.LeakProperty)
	if r.Drift != nil && (!exact || r.Drift.Units != 0) {
		out = append(out, metrics(r, "drift-pct")...)
	}
	return out
}

// group are the rounds of one strategy and setting.
type group struct {
	runs []*results.Run
	// of condenses the rounds, as reports show them.
	of *results.Summary
}

// timed are the rounds behind the timings.
func (g *group) timed() []*results.Run {
	return slices.DeleteFunc(slices.Clone(g.runs), func(r *results.Run) bool { return !g.of.Keeps(r.Repetition) })
}

// grouped puts the rounds of each strategy and setting together, in order of
// appearance. The open loop next to a closed one is a group of its own.
func grouped(f *results.File) (out []group) {
	condensed := map[string]*results.Summary{}
	of := map[string]*results.Summary{}
	summaries := f.Summarised()
	for i := range summaries {
		condensed[summaries[i].Key] = &summaries[i]
	}
	var rounds collect.By[string, *results.Run]
	add := func(r *results.Run, s *results.Summary) {
		rounds.Add(r.Key(), r)
		of[r.Key()] = cmp.Or(of[r.Key()], s)
	}
	for i := range f.Runs {
		s := condensed[f.Runs[i].Key()]
		add(&f.Runs[i], s)
		if p := f.Runs[i].Paced; p != nil {
			add(p, s.Paced)
		}
	}
	for _, key := range rounds.Keys {
		out = append(out, group{rounds.Of[key], of[key]})
	}
	return out
}
