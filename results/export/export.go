// Package export writes records in forms that other tools read: Go's benchmark
// format for benchstat, percentiles for the plotter of HdrHistogram, and CSV.
package export

import (
	"slices"

	"github.com/quotabench/quotabench/results"
)

// Metric is a figure of one round as a Go benchmark reports it.
type Metric struct {
	// Unit with which the benchmark format names it, e.g. "leak-units/op".
	Unit  string
	Value float64
}

// The units of metrics.
const (
	UnitTime         = "ns/op"
	UnitP99          = "p99-ns"
	UnitResponseP99  = "response-p99-ns"
	UnitRatio        = "decisions/INCR"
	UnitLeak         = "leak-units/op"
	UnitFalseRejects = "false-rejects-%"
	UnitDrift        = "drift-%"
	UnitCommands     = "cmds/op"
)

// Units are the lines of the benchmark format which say whether more or less of a unit
// is better.
const Units = "Unit " + UnitRatio + " better=higher\n" +
	"Unit " + UnitLeak + " better=lower\n" +
	"Unit " + UnitFalseRejects + " better=lower\n" +
	"Unit " + UnitCommands + " better=lower\n"

// Metrics are the figures of a round. The leak is always among them. Left out is what
// the strategy promises to be 0, as long as it is: false rejects where a clause allows
// none, and drift where no leak is allowed either.
func Metrics(r *results.Run) []Metric {
	return append(Timings(r), Correctness(r)...)
}

// Timings are those of [Metrics] that are measured on a clock. Only a closed loop has
// a time per decision: an open one has a rate that was asked for. The ratio is the
// throughput by that of the reference loop of the same round.
func Timings(r *results.Run) []Metric {
	return clocked(r, r.Audit.ResponseValid() || !r.Audit.TimingsValid)
}

func clocked(r *results.Run, response bool) []Metric {
	var out []Metric
	if n := float64(r.Issued); n > 0 && r.Params.Loop != results.OpenLoop {
		out = append(out, Metric{UnitTime, float64(r.ElapsedNS) / n})
		if r.ReferencePerS > 0 {
			out = append(out, Metric{UnitRatio, r.ThroughputPerS / r.ReferencePerS})
		}
	}
	out = append(out, Metric{UnitP99, float64(r.Service.P99)})
	if r.Response != nil && response {
		out = append(out, Metric{UnitResponseP99, float64(r.Response.P99)})
	}
	return out
}

// Correctness are those of [Metrics] that need no clock.
func Correctness(r *results.Run) []Metric {
	n := float64(max(r.Issued, 1))
	out := []Metric{
		{UnitLeak, float64(r.Leak.Units) / n},
		{UnitCommands, r.Cost.Commands + r.Cost.SQL + r.Cost.ModelSQL},
	}
	noRejects := r.FalseRejects.Count == 0 && allowsNone(r, results.FalseRejectProperty)
	if !noRejects {
		out = append(out, Metric{UnitFalseRejects, r.FalseRejects.PctOfValid})
	}
	exact := noRejects && allowsNone(r, results.LeakProperty)
	if r.Drift != nil && (!exact || r.Drift.Units != 0) {
		out = append(out, Metric{UnitDrift, r.Drift.PctOfLimit})
	}
	return out
}

// allowsNone reports whether the strategy promises none of the property.
func allowsNone(r *results.Run, property string) bool {
	return slices.ContainsFunc(r.Guarantee, func(c results.Clause) bool { return c.Property == property && c.Bound == 0 })
}

// group are the rounds of one strategy and setting.
type group struct {
	key  string
	runs []*results.Run
	// of condenses the rounds, as reports show them.
	of *results.Summary
}

// timed are the rounds behind the timings; none if timings are not measurable.
func (g *group) timed() []*results.Run {
	return slices.DeleteFunc(slices.Clone(g.runs), func(r *results.Run) bool { return !g.of.Keeps(r.Repetition) })
}

// grouped puts the rounds of each strategy and setting together, in order of
// appearance. The open loop beside a closed one is a group of its own.
func grouped(f *results.File) (out []group) {
	at := map[string]int{}
	condensed := map[string]*results.Summary{}
	summaries := f.Summarised()
	for i := range summaries {
		condensed[summaries[i].Key] = &summaries[i]
	}
	add := func(r *results.Run, of *results.Summary) {
		key := r.Key()
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, group{key: key, of: of})
		}
		out[i].runs = append(out[i].runs, r)
	}
	for i := range f.Runs {
		of := condensed[f.Runs[i].Key()]
		add(&f.Runs[i], of)
		if p := f.Runs[i].Paced; p != nil {
			add(p, of.Paced)
		}
	}
	return out
}
