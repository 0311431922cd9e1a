package text

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/answer"
	"github.com/quotabench/quotabench/results/text/layout"
)

// Table renders all that a file says: the answer, what was measured and on what, then
// of each setting correctness, speed, costs and declared guarantees, who was skipped,
// and everything that speaks against the figures. The file of a sweep is that of [Sweep].
func Table(w io.Writer, page layout.Page, f results.File) error {
	if f.Sweep != nil {
		return Sweep(w, page, f)
	}
	f.Summaries = f.Summarised() // once for all sections
	return write(w, func(section func([]string)) {
		section(answerLines(page, f))
		sections(page, f, section)
	})
}

// Verbose renders the same for a terminal, where the answer comes last.
func Verbose(w io.Writer, page layout.Page, f results.File) error {
	if f.Sweep != nil {
		return Sweep(w, page, f)
	}
	f.Summaries = f.Summarised() // once for all sections
	return write(w, func(section func([]string)) {
		sections(page, f, section)
		section(answerLines(page, f))
	})
}

func sections(page layout.Page, f results.File, section func([]string)) {
	section(entryLines(page, Head(f)))
	for _, group := range groupsOf(f) {
		section(entryLines(page, Setting(f, group)))
		section(correctnessLines(page, f, group, true))
		section(speedLines(page, f, group, true))
		section(delayLines(page, group))
		section(exactCostLines(page, f, group))
		section(sampledCostLines(page, f, group))
		section(rollingLines(page, group))
		section(settlementLines(page, group))
		section(meterLines(page, group))
		section(storedLines(page, group))
		section(guaranteeLines(page, group))
	}
	if len(f.Summaries) == 0 {
		section([]string{"No strategy was run."})
	}
	section(skippedLines(page, f))
	section(findingLines(page, Findings(f.Summaries)))
}

// Brief renders what a terminal has room for: correctness and speed of each setting,
// what takes figures back, and the answer, which comes last and so is seen first.
func Brief(w io.Writer, page layout.Page, f results.File) error {
	if f.Sweep != nil {
		return Sweep(w, page, f)
	}
	f.Summaries = f.Summarised() // once for all sections
	return write(w, func(section func([]string)) {
		section(entryLines(page, briefHead(f)))
		for _, group := range groupsOf(f) {
			section(correctnessLines(page, f, group, false))
			section(speedLines(page, f, group, false))
		}
		if len(f.Summaries) == 0 {
			section([]string{"No strategy was run."})
		}
		section(briefSkipped(page, f))
		section(gravestLines(page, f.Summaries))
		section(answerLines(page, f))
	})
}

// groupsOf are the strategies of each setting, in the order of the answer.
func groupsOf(f results.File) (out [][]results.Summary) {
	for _, s := range answer.Of(f).Settings {
		out = append(out, s.Summaries())
	}
	return out
}

// write passes on what body makes, an empty line between sections.
func write(w io.Writer, body func(section func([]string))) error {
	b := bufio.NewWriter(w)
	first := true
	body(func(lines []string) {
		if len(lines) == 0 {
			return
		}
		if !first {
			_ = b.WriteByte('\n') // an error sticks to the writer and comes out of Flush
		}
		first = false
		for _, l := range lines {
			_, _ = b.WriteString(l + "\n")
		}
	})
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// rowsOf fills a grid with one row per strategy, and sets baselines apart.
func rowsOf(g *layout.Grid, group []results.Summary, row func(*results.Summary) []string) {
	for i := range group {
		s := &group[i]
		if i > 0 && s.Form == results.FormBaseline && group[i-1].Form != results.FormBaseline {
			g.AddRule()
		}
		g.Add(append([]string{format.Plain(s.Label)}, row(s)...)...)
	}
}

// labelColumn is the first column of every table. Long option lists wrap in it.
var labelColumn = layout.Column{Title: "strategy", Left: true, Flexible: true, Minimum: 21}

// speedLines renders latency and throughput. Latency comes from an open loop where
// there is one, and beside it stands what a bare client saw in the same rounds. Unless
// it is to be whole it leaves out rarer percentiles, intervals and what always holds.
func speedLines(page layout.Page, f results.File, group []results.Summary, whole bool) []string {
	atRate := group[0].AtRate()
	open, paced := atRate.Params.Loop == results.OpenLoop, group[0].Paced != nil
	simulated := f.Kind == results.Simulated
	over, service, title := "", "", fmt.Sprintf("SPEED  service time at concurrency %d, closed loop", group[0].Params.Workers)
	if open {
		over, service = "response", "service"
		title = "SPEED  response time from the intended start, service time from the actual one; " + openLoop(&atRate.Params)
	}
	if paced {
		service = "saturated service"
		title = fmt.Sprintf("SPEED  response time from the intended start in %s; saturated: service time and throughput of %d callers that never pause",
			openLoop(&atRate.Params), group[0].Params.Workers)
		if !whole {
			title = fmt.Sprintf("SPEED  response time in %s; decisions per second of %d callers that never pause", openLoop(&atRate.Params), group[0].Params.Workers)
		}
	}
	if simulated {
		title = "MODELLED LATENCY  virtual time; no statement about real stores"
	}
	bare := slices.ContainsFunc(group, func(s results.Summary) bool { return s.AtRate().Reference != nil })
	legend := marks{}
	// Where a strategy cannot keep up, response times are those of its queue.
	response := func(x results.Percentile, s *results.Summary) string {
		if r := s.AtRate(); 2*r.Saturated > r.Timed {
			return "-"
		}
		return legend.percentile(x)
	}
	columns := []column{
		{layout.Column{Title: "p50", Over: over}, func(s *results.Summary) string {
			if r := s.AtRate(); 2*r.Saturated > r.Timed {
				return legend.saturated()
			}
			return response(s.Latency().P50, s)
		}, false},
		{layout.Column{Title: "p99", Over: over}, func(s *results.Summary) string { return response(s.Latency().P99, s) }, false},
		{layout.Column{Title: "p99 interval", Over: over, Optional: true}, func(s *results.Summary) string {
			if r := s.AtRate(); 2*r.Saturated > r.Timed {
				return ""
			}
			return p99Interval(s.Latency().P99)
		}, false},
		{layout.Column{Title: "p99.9", Over: over}, func(s *results.Summary) string { return response(s.Latency().P999, s) }, true},
	}
	if bare {
		columns = append(columns,
			column{layout.Column{Title: "p50", Over: "bare client"}, func(s *results.Summary) string { return legend.reference(s.AtRate().Reference)[0] }, true},
			column{layout.Column{Title: "p99", Over: "bare client"}, func(s *results.Summary) string { return legend.reference(s.AtRate().Reference)[1] }, true})
	}
	if open {
		columns = append(columns,
			column{layout.Column{Title: "p50", Over: service}, func(s *results.Summary) string { return legend.percentile(s.Service.P50) }, true},
			column{layout.Column{Title: "p99", Over: service}, func(s *results.Summary) string { return legend.percentile(s.Service.P99) }, true})
	}
	if !simulated {
		ratio := "ratio to\nINCR loop"
		if paced {
			ratio = "times\nbare" // there is less room
		}
		columns = append(columns,
			column{layout.Column{Title: "decisions\nper s"}, func(s *results.Summary) string {
				return legend.timing(s.TimingsCount, format.Count(int64(s.Throughput.Value+0.5)))
			}, false},
			column{layout.Column{Title: ratio, Optional: true}, func(s *results.Summary) string { return ratioCell(s, s.Params.Loop == results.OpenLoop) }, false})
	}
	if !whole {
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.more })
		columns = append(columns, column{layout.Column{Title: "commands and SQL\nper decision"}, func(s *results.Summary) string { return format.Per(answer.PerDecision(s)) }, false})
	}
	g := layout.Grid{Columns: []layout.Column{labelColumn}}
	for _, c := range columns {
		g.Columns = append(g.Columns, c.Column)
	}
	rowsOf(&g, group, func(s *results.Summary) []string {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.cell(s)
		}
		return cells
	})
	always := KeptRounds(group)
	if bare && whole {
		always += "; bare client" + plainOne(group) + ": one INCR of one key for each request, in the same rounds"
		if paced && !simulated {
			always += "; times bare: decisions per second by those of bare clients that never pause"
		}
	}
	if bare && !whole {
		always = format.Join("; ", bareText(group, legend), always)
	}
	out := append(page.Title(title), page.Table(&g)...)
	return append(out, legend.lines(page, always)...)
}

// bareText says what one INCR takes, which all strategies were measured beside.
func bareText(group []results.Summary, legend marks) string {
	for i := range group {
		if r := group[i].AtRate().Reference; r != nil {
			cells := legend.reference(r)
			return "a bare client's INCR in the same rounds" + plainOne(group) + ": p50 " + cells[0] + ", p99 " + cells[1]
		}
	}
	return ""
}

// plainOne says which kind the bare client is, where strategies have another.
func plainOne(group []results.Summary) string {
	if slices.ContainsFunc(group, func(s results.Summary) bool { return s.Params.Client != "" }) {
		return " (the plain client, beside every strategy)"
	}
	return ""
}

// delayLines renders how late requests of an open loop started, and whether
// they piled up.
func delayLines(page layout.Page, group []results.Summary) []string {
	const pacer, worker, backlog = "late by the pacer", "waiting for a worker", "backlog, requests"
	g := layout.Grid{Columns: []layout.Column{
		labelColumn, {Title: "p50", Over: pacer}, {Title: "p99", Over: pacer}, {Title: "p50", Over: worker}, {Title: "p99", Over: worker},
		{Title: "half way", Over: backlog}, {Title: "at the end", Over: backlog}, {Title: "saturated", Optional: true, Left: true},
	}}
	rowsOf(&g, group, func(s *results.Summary) []string {
		s = s.AtRate()
		l := s.Lateness
		if l == nil {
			return []string{"-", "-", "-", "-", "-", "-", ""}
		}
		saturated := ""
		if s.Saturated > 0 {
			saturated = fmt.Sprintf("%d of %s", s.Saturated, format.Plural(int64(s.Timed), "round", "rounds"))
		}
		ns := func(n int64) string {
			if n == 0 {
				return "0"
			}
			return format.NS(float64(n))
		}
		return []string{ns(l.PacerP50), ns(l.PacerP99), ns(l.WorkerP50), ns(l.WorkerP99), format.Count(l.BacklogHalf), format.Count(l.BacklogEnd), saturated}
	})
	if !slices.ContainsFunc(group, func(s results.Summary) bool { return s.AtRate().Lateness != nil }) {
		return nil
	}
	out := append(page.Title("SCHEDULING DELAY  how late requests started, medians over kept rounds; backlog: how many were due and waited, in the worst round"), page.Table(&g)...)
	note := "rounds kept: " + keptOf(group, (*results.Summary).AtRate)
	if slices.ContainsFunc(group, func(s results.Summary) bool { return s.AtRate().Saturated > 0 }) {
		note += "; saturated: the backlog kept growing, so that response times measure the queue, and grow with the duration"
	}
	return append(out, noteLines(page, note)...)
}

// ratioCell is empty in open loop, where the ratio says no more than the rate.
func ratioCell(s *results.Summary, open bool) string {
	if open || s.Ratio.Rounds == 0 {
		return ""
	}
	return format.Digits(s.Ratio.Value)
}

func p99Interval(p results.Percentile) string {
	if p.Coverage == 0 {
		return "" // fewer than 6 rounds say nothing about how much the figure varies
	}
	return format.NSInterval(p.Value, p.Lo, p.Hi)
}
