// Package export writes records in forms that other tools read: Go's benchmark
// format for benchstat, percentiles for the plotter of HdrHistogram, and CSV.
package export

import (
	"cmp"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/quota"
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
	for _, figure := range figures.All() {
		if figure.Bench != "" && figure.Better != figures.Neither && figure.Unit != figures.Nanoseconds {
			lines += "Unit " + figure.Bench + " better=" + string(figure.Better) + "\n"
		}
	}
	return lines
}()

// Metrics are the figures of a round. The leak is always among them. Left out is what
// the strategy promises to be 0, as long as it is: false rejects if a clause allows
// none, and drift if no leak is allowed either.
func Metrics(run *results.Run) []Metric {
	return append(clocked(run), Correctness(run)...)
}

// clocked are those of [Metrics] that are measured on a clock. Only a closed loop has
// a time per decision: an open one has a rate that was asked for. The ratio is the
// throughput divided by that of the reference loop of the same round.
func clocked(run *results.Run) []Metric {
	keys := []string{"time", "ratio", "service.p99", "response.p99", "others"}
	if run.Params.Loop == codes.OpenLoop {
		keys = keys[2:]
	}
	return metrics(run, keys...)
}

func metrics(run *results.Run, keys ...string) (out []Metric) {
	for _, k := range keys {
		figure := figures.Of(k)
		if value, ok := figure.Round(run); ok {
			out = append(out, Metric{figure.Bench, value})
		}
	}
	return out
}

// Correctness are those of [Metrics] that need no clock.
func Correctness(run *results.Run) []Metric {
	out := metrics(run, "leak-per-request", "all-commands")
	noRejects := run.FalseRejects.Count == 0 && run.AllowsNone(string(quota.PropertyFalseReject))
	if !noRejects {
		out = append(out, metrics(run, "false-rejects-pct")...)
	}
	exact := noRejects && run.AllowsNone(string(quota.PropertyLeak))
	if run.Drift != nil && (!exact || run.Drift.Units != 0) {
		out = append(out, metrics(run, "drift-pct")...)
	}
	return out
}

// group are the rounds of one strategy and setting.
type group struct {
	runs []*results.Run
	// of condenses the rounds, as reports show them.
	summary *results.Summary
}

// timed are the rounds behind the timings.
func (g *group) timed() []*results.Run {
	return slices.DeleteFunc(slices.Clone(g.runs), func(run *results.Run) bool { return !g.summary.Keeps(run.Repetition) })
}

// grouped puts the rounds of each strategy and setting together, in order of
// appearance. The open loop next to a closed one is a group of its own.
func grouped(file *results.File) (out []group) {
	condensed := map[string]*results.Summary{}
	of := map[string]*results.Summary{}
	summaries := file.Summarised()
	for i := range summaries {
		condensed[summaries[i].Key] = &summaries[i]
	}
	var rounds collect.By[string, *results.Run]
	add := func(run *results.Run, summary *results.Summary) {
		rounds.Add(run.Key(), run)
		of[run.Key()] = cmp.Or(of[run.Key()], summary)
	}
	for i := range file.Runs {
		summary := condensed[file.Runs[i].Key()]
		add(&file.Runs[i], summary)
		if run := file.Runs[i].Paced; run != nil {
			add(run, summary.Paced)
		}
	}
	for _, key := range rounds.Keys {
		out = append(out, group{rounds.Of[key], of[key]})
	}
	return out
}
