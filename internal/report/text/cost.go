package text

import (
	"maps"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// exactCost is what the cost probe counted, if there was one. It
// leaves out allocations: the runtime counts them in batches, so those of a
// single decision are only exact on average, which the sample tells better.
func exactCost(file results.File, group []results.Summary) document.Section {
	var all []document.FigureColumn
	disturbed := false
	for _, k := range []struct {
		name string
		of   func(*results.Probe) *results.ProbeCost
	}{
		{"a subject's first", func(probe *results.Probe) *results.ProbeCost { return &probe.First }},
		{"admitted", func(probe *results.Probe) *results.ProbeCost { return probe.Admitted }},
		{"rejected", func(probe *results.Probe) *results.ProbeCost { return probe.Rejected }},
	} {
		for _, column := range document.Figures(figures.Table("exact cost")...) {
			whole := column.Cell
			column.Over = k.name
			column.Cell = func(summary *results.Summary, notes *figures.Notes) document.Cell {
				if summary.Cost.Probe == nil || k.of(summary.Cost.Probe) == nil {
					return document.Cell{}
				}
				cell := whole(&results.Summary{Cost: results.Cost{ProbeCost: *k.of(summary.Cost.Probe)}}, notes)
				if summary.Cost.Probe.Disturbed {
					cell.Text = figures.Mark + cell.Text
					disturbed = true
				}
				return cell
			}
			all = append(all, column)
		}
	}
	notes := figures.Notes{Exact: true}
	g := grid(group, all, &notes)
	explained := "commands: to Redis" + others(file) + "; trips: round trips to Redis and PostgreSQL; " +
		"admitted and rejected are means of later requests"
	if disturbed {
		explained += "; " + figures.Mark + " at most: connections were lost or opened in each probe"
	}
	note := noted(explained, &notes)
	return titled("COST, EXACT  per decision, counted by a probe: one caller, one request at a time, no "+
		"background jobs", g, note)
}

// sampledCost is what decisions cost in the run.
func sampledCost(file results.File, group []results.Summary) document.Section {
	note := "client: all of this process, the load generator included"
	if text := others(file); text != "" {
		note += "; Redis: Redis" + text
	}
	if slices.ContainsFunc(group, func(summary results.Summary) bool { return summary.Cost.RunQueue > 0 }) {
		note += "; run queue: how long its threads were ready to run and did not"
	}
	note += "; rounds kept: " + keptOf(group, itself)
	if !slices.ContainsFunc(group, func(summary results.Summary) bool { return summary.Cost.ClientCPU > 0 }) {
		note = ""
	}
	title := "COST, SAMPLED  per decision, mean of a whole run under load; medians over kept rounds"
	if file.Kind == results.Simulated {
		title = "COST  per decision, mean of a whole run; medians over rounds"
	}
	columns := document.Figures(slices.Concat(figures.Table("cost"), figures.Table("process"))...)
	return figureTable(title, group, columns, note)
}

// others says that commands and processor time of further kinds of stores stand under
// Redis', if a run had some.
func others(file results.File) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(file.Stores)) {
		if kind, _, _ := strings.Cut(name, "."); file.Class(name) == codes.ClassOther && !slices.Contains(names, kind) {
			names = append(names, kind)
		}
	}
	return surrounded(", or the store that a strategy has instead (", strings.Join(names, ", "), ")")
}
