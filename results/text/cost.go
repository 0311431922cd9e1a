package text

import (
	"maps"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text/layout"
)

// exactCostLines renders what the cost probe counted, where there was one. It
// leaves out allocations: the runtime counts them in batches, so that those of a
// single decision are only exact on average, which the sample tells better.
func exactCostLines(page layout.Page, f results.File, group []results.Summary) []string {
	kinds := []struct {
		name string
		of   func(*results.Probe) *results.ProbeCost
	}{
		{"a subject's first", func(p *results.Probe) *results.ProbeCost { return &p.First }},
		{"admitted", func(p *results.Probe) *results.ProbeCost { return p.Admitted }},
		{"rejected", func(p *results.Probe) *results.ProbeCost { return p.Rejected }},
	}
	if !slices.ContainsFunc(group, func(s results.Summary) bool { return s.Cost.Probe != nil }) {
		return nil
	}
	g := layout.Grid{Columns: []layout.Column{labelColumn}}
	for _, k := range kinds {
		for _, title := range []string{"commands", "trips", "SQL", "bytes"} {
			g.Columns = append(g.Columns, layout.Column{Title: title, Over: k.name, Optional: true})
		}
	}
	legend := marks{}
	rowsOf(&g, group, func(s *results.Summary) []string {
		cells := make([]string, 0, len(g.Columns))
		for _, k := range kinds {
			var c *results.ProbeCost
			if s.Cost.Probe != nil {
				c = k.of(s.Cost.Probe)
			}
			if c == nil {
				cells = append(cells, "", "", "", "")
				continue
			}
			cells = append(cells, formatExact(c.Commands), formatExact(c.RoundTrips), legend.sql(c.SQL, c.ModelSQL, formatExact),
				formatExact(c.Bytes))
		}
		return cells
	})
	return costTable(page, &g, "COST, EXACT  per decision, counted by a probe: one caller, one request at a time, no background jobs",
		legend.lines(page, "commands: to Redis"+others(f)+"; trips: round trips to Redis and PostgreSQL; admitted and rejected are means of later requests"))
}

// sampledCostLines renders what decisions cost in the run.
func sampledCostLines(page layout.Page, f results.File, group []results.Summary) []string {
	const cpu = "CPU, µs"
	g := layout.Grid{Columns: []layout.Column{
		labelColumn, {Title: "commands", Optional: true}, {Title: "trips", Optional: true}, {Title: "SQL", Optional: true}, {Title: "bytes", Optional: true},
		{Title: "allocs", Optional: true}, {Title: "client", Over: cpu, Optional: true}, {Title: "Redis", Over: cpu, Optional: true},
		{Title: "PostgreSQL", Over: cpu, Optional: true}, {Title: "run queue,\nµs", Optional: true}, {Title: "keys without\nTTL", Optional: true},
	}}
	legend := marks{}
	rowsOf(&g, group, func(s *results.Summary) []string {
		c := &s.Cost
		return []string{
			format.Per(c.Commands), format.Per(c.RoundTrips), legend.sql(c.SQL, c.ModelSQL, format.Per), format.Per(c.Bytes), format.Per(c.Allocs),
			micros(c.ClientCPU), micros(c.RedisCPU), micros(c.PostgresCPU), micros(c.RunQueue), keysCell(c),
		}
	})
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
	return costTable(page, &g, title, legend.lines(page, note))
}

// others says that commands and processor time of further kinds of stores stand under
// Redis', where a run had some.
func others(f results.File) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.Stores)) {
		if kind, _, _ := strings.Cut(name, "."); kind != "redis" && kind != "postgres" && !slices.Contains(names, kind) {
			names = append(names, kind)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", or the store that a strategy has instead (" + strings.Join(names, ", ") + ")"
}

// costTable is empty where no column has anything to show.
func costTable(page layout.Page, g *layout.Grid, title string, notes []string) []string {
	g.Compact()
	if len(g.Columns) == 1 {
		return nil
	}
	return append(append(page.Title(title), page.Table(g)...), notes...)
}

// formatExact renders a count that is whole more often than not.
func formatExact(x float64) string { return format.TrimZeros(format.Per(x)) }

// micros renders nanoseconds per decision in microseconds; empty where unknown.
func micros(ns float64) string {
	if ns <= 0 {
		return ""
	}
	return format.Per(ns / 1e3)
}

// keysCell says how many keys will stay for ever.
func keysCell(c *results.Cost) string {
	if c.KeysWithoutTTL == 0 {
		return ""
	}
	return format.Count(c.KeysWithoutTTL) + " of " + format.Count(c.KeysAtEnd)
}
