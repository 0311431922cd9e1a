package results

import "slices"

// exactCostLines renders what the cost probe counted, where there was one. It
// leaves out allocations: the runtime counts them in batches, so that those of a
// single decision are only exact on average, which the sample tells better.
func exactCostLines(group []Summary) []string {
	kinds := []struct {
		name string
		of   func(*Probe) *ProbeCost
	}{
		{"a subject's first", func(p *Probe) *ProbeCost { return &p.First }},
		{"admitted", func(p *Probe) *ProbeCost { return p.Admitted }},
		{"rejected", func(p *Probe) *ProbeCost { return p.Rejected }},
	}
	if !slices.ContainsFunc(group, func(s Summary) bool { return s.Cost.Probe != nil }) {
		return nil
	}
	g := grid{columns: []column{labelColumn}}
	for _, k := range kinds {
		for _, title := range []string{"commands", "trips", "SQL", "bytes"} {
			g.columns = append(g.columns, column{title: title, over: k.name, optional: true})
		}
	}
	legend := marks{}
	rowsOf(&g, group, func(s *Summary) []string {
		cells := make([]string, 0, len(g.columns))
		for _, k := range kinds {
			var c *ProbeCost
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
	return costTable(&g, "COST, EXACT  per decision, counted by a probe: one caller, one request at a time, no background jobs",
		legend.lines("commands: to Redis; trips: round trips to Redis and PostgreSQL; admitted and rejected are means of later requests"))
}

// sampledCostLines renders what decisions cost in the run.
func sampledCostLines(f File, group []Summary) []string {
	const cpu = "CPU, µs"
	g := grid{columns: []column{
		labelColumn, {title: "commands", optional: true}, {title: "trips", optional: true}, {title: "SQL", optional: true}, {title: "bytes", optional: true},
		{title: "allocs", optional: true}, {title: "client", over: cpu, optional: true}, {title: "Redis", over: cpu, optional: true},
		{title: "PostgreSQL", over: cpu, optional: true}, {title: "run queue,\nµs", optional: true}, {title: "keys without\nTTL", optional: true},
	}}
	legend := marks{}
	rowsOf(&g, group, func(s *Summary) []string {
		c := &s.Cost
		return []string{
			formatPer(c.Commands), formatPer(c.RoundTrips), legend.sql(c.SQL, c.ModelSQL, formatPer), formatPer(c.Bytes), formatPer(c.Allocs),
			micros(c.ClientCPU), micros(c.RedisCPU), micros(c.PostgresCPU), micros(c.RunQueue), keysCell(c),
		}
	})
	note := "client: all of this process, the load generator included"
	if slices.ContainsFunc(group, func(s Summary) bool { return s.Cost.RunQueue > 0 }) {
		note += "; run queue: how long its threads were ready to run and did not"
	}
	if !slices.ContainsFunc(group, func(s Summary) bool { return s.Cost.ClientCPU > 0 }) {
		note = ""
	}
	title := "COST, SAMPLED  per decision, mean of a whole run under load; medians over rounds"
	if f.Kind == Simulated {
		title = "COST  per decision, mean of a whole run; medians over rounds"
	}
	return costTable(&g, title, legend.lines(note))
}

// costTable is empty where no column has anything to show.
func costTable(g *grid, title string, notes []string) []string {
	g.compact()
	if len(g.columns) == 1 {
		return nil
	}
	return append(append(wrap(title, tableWidth), g.lines(tableWidth)...), notes...)
}

// formatExact renders a count that is whole more often than not.
func formatExact(x float64) string { return trimZeros(formatPer(x)) }

// micros renders nanoseconds per decision in microseconds; empty where unknown.
func micros(ns float64) string {
	if ns <= 0 {
		return ""
	}
	return formatPer(ns / 1e3)
}

// keysCell says how many keys will stay for ever.
func keysCell(c *Cost) string {
	if c.KeysWithoutTTL == 0 {
		return ""
	}
	return formatCount(c.KeysWithoutTTL) + " of " + formatCount(c.KeysAtEnd)
}
