package text

import (
	"maps"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// exactCostLines renders what the cost probe counted, if there was one. It
// leaves out allocations: the runtime counts them in batches, so those of a
// single decision are only exact on average, which the sample tells better.
func exactCostLines(page layout.Page, f results.File, group []results.Summary) []string {
	var all []column
	disturbed := false
	for _, k := range []struct {
		name string
		of   func(*results.Probe) *results.ProbeCost
	}{
		{"a subject's first", func(p *results.Probe) *results.ProbeCost { return &p.First }},
		{"admitted", func(p *results.Probe) *results.ProbeCost { return p.Admitted }},
		{"rejected", func(p *results.Probe) *results.ProbeCost { return p.Rejected }},
	} {
		for _, c := range columns(figures.Table("exact cost")...) {
			cell := c.cell
			c.Over, c.cell = k.name, func(s *results.Summary, n *figures.Notes) string {
				if s.Cost.Probe == nil || k.of(s.Cost.Probe) == nil {
					return ""
				}
				text := cell(&results.Summary{Cost: results.Cost{ProbeCost: *k.of(s.Cost.Probe)}}, n)
				if s.Cost.Probe.Disturbed {
					text = figures.Mark + text
					disturbed = true
				}
				return text
			}
			all = append(all, c)
		}
	}
	notes := figures.Notes{Exact: true}
	g := grid(group, all, &notes)
	explained := "commands: to Redis" + others(f) + "; trips: round trips to Redis and PostgreSQL; " +
		"admitted and rejected are means of later requests"
	if disturbed {
		explained += "; " + figures.Mark + " at most: connections were lost or opened in each probe"
	}
	note := noted(explained, &notes)
	return table(page, "COST, EXACT  per decision, counted by a probe: one caller, one request at a time, no background jobs", g, note)
}

// sampledCostLines renders what decisions cost in the run.
func sampledCostLines(page layout.Page, f results.File, group []results.Summary) []string {
	note := "client: all of this process, the load generator included"
	if o := others(f); o != "" {
		note += "; Redis: Redis" + o
	}
	if slices.ContainsFunc(group, func(s results.Summary) bool { return s.Cost.RunQueue > 0 }) {
		note += "; run queue: how long its threads were ready to run and did not"
	}
	note += "; rounds kept: " + keptOf(group, itself)
	if !slices.ContainsFunc(group, func(s results.Summary) bool { return s.Cost.ClientCPU > 0 }) {
		note = ""
	}
	title := "COST, SAMPLED  per decision, mean of a whole run under load; medians over kept rounds"
	if f.Kind == results.Simulated {
		title = "COST  per decision, mean of a whole run; medians over rounds"
	}
	return figureTable(page, title, group, columns(slices.Concat(figures.Table("cost"), figures.Table("process"))...), note)
}

// others says that commands and processor time of further kinds of stores stand under
// Redis', if a run had some.
func others(f results.File) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.Stores)) {
		if kind, _, _ := strings.Cut(name, "."); f.Class(name) == results.ClassOther && !slices.Contains(names, kind) {
			names = append(names, kind)
		}
	}
	return surrounded(", or the store that a strategy has instead (", strings.Join(names, ", "), ")")
}
