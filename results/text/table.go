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

// Table renders a file for a terminal, within 120 columns: what was measured
// and on what, speed and cost, correctness, declared guarantees, what was skipped,
// and everything that speaks against the figures.
func Table(w io.Writer, page layout.Page, f results.File) error {
	b := bufio.NewWriter(w)
	put := func(lines ...string) {
		for _, l := range lines {
			// A write error sticks to the writer and comes out of Flush.
			_, _ = b.WriteString(l + "\n")
		}
	}
	section := func(lines []string) {
		if len(lines) > 0 {
			put("")
			put(lines...)
		}
	}
	summaries := f.Summarised()
	put(entryLines(page, Head(f))...)
	for _, group := range answer.Tables(summaries) {
		put("")
		put(entryLines(page, Setting(f, group))...)
		put("")
		put(speedLines(page, f, group)...)
		section(delayLines(page, group))
		section(exactCostLines(page, f, group))
		section(sampledCostLines(page, f, group))
		section(correctnessLines(page, group))
		section(rollingLines(page, group))
		section(settlementLines(page, group))
		section(meterLines(page, group))
		section(storedLines(page, group))
		section(guaranteeLines(page, group))
	}
	if len(summaries) == 0 {
		put("", "No strategy was run.")
	}
	section(skippedLines(page, f))
	section(findingLines(page, summaries))
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
// there is one, and beside it stands what a bare client saw in the same rounds.
func speedLines(page layout.Page, f results.File, group []results.Summary) []string {
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
	}
	if simulated {
		title = "MODELLED LATENCY  virtual time; no statement about real stores"
	}
	bare := slices.ContainsFunc(group, func(s results.Summary) bool { return s.AtRate().Reference != nil })
	g := layout.Grid{Columns: []layout.Column{labelColumn, {Title: "p50", Over: over}, {Title: "p99", Over: over},
		{Title: intervalTitle(group), Over: over, Optional: true}, {Title: "p99.9", Over: over}}}
	if bare {
		g.Columns = append(g.Columns, layout.Column{Title: "p50", Over: "bare client"}, layout.Column{Title: "p99", Over: "bare client"})
	}
	if open {
		g.Columns = append(g.Columns, layout.Column{Title: "p50", Over: service}, layout.Column{Title: "p99", Over: service})
	}
	if !simulated {
		ratio := "ratio to\nINCR loop"
		if paced {
			ratio = "times\nbare" // there is less room
		}
		g.Columns = append(g.Columns, layout.Column{Title: "decisions\nper s"}, layout.Column{Title: ratio, Optional: true})
	}
	legend := marks{}
	rowsOf(&g, group, func(s *results.Summary) []string {
		r, l := s.AtRate(), s.Latency()
		cells := []string{
			legend.percentile(r.ResponseCounts, l.P50), legend.percentile(r.ResponseCounts, l.P99), p99Interval(l.P99), legend.percentile(r.ResponseCounts, l.P999),
		}
		if 2*r.Saturated > r.Timed {
			cells[0], cells[1], cells[2], cells[3] = legend.saturated(), "-", "", "-"
		}
		if bare {
			cells = append(cells, legend.reference(r.Reference)...)
		}
		if open {
			cells = append(cells, legend.percentile(s.TimingsCount, s.Service.P50), legend.percentile(s.TimingsCount, s.Service.P99))
		}
		if !simulated {
			cells = append(cells, legend.timing(s.TimingsCount, format.Count(int64(s.Throughput.Value+0.5))), ratioCell(s, s.Params.Loop == results.OpenLoop))
		}
		return cells
	})
	always := ""
	if bare {
		always = "bare client: one INCR of one key for each request, in the same rounds"
		if paced && !simulated {
			always += "; times bare: decisions per second by those of bare clients that never pause"
		}
	}
	out := append(page.Title(title), page.Table(&g)...)
	return append(out, legend.lines(page, always)...)
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
	out := append(page.Title("SCHEDULING DELAY  how late requests started, medians over rounds; backlog: how many were due and waited, in the worst round"), page.Table(&g)...)
	if slices.ContainsFunc(group, func(s results.Summary) bool { return s.AtRate().Saturated > 0 }) {
		out = append(out, noteLines(page, "saturated: the backlog kept growing, so that response times measure the queue, and grow with the duration")...)
	}
	return out
}

// ratioCell is empty in open loop, where the ratio says no more than the rate.
func ratioCell(s *results.Summary, open bool) string {
	if open || s.Ratio.Rounds == 0 {
		return ""
	}
	return format.Digits(s.Ratio.Value)
}

func p99Interval(p results.Percentile) string {
	if p.Status != results.PerRound || p.Rounds < 2 {
		return ""
	}
	return format.NSInterval(p.Value, p.Lo, p.Hi)
}

// intervalTitle says what the brackets are. Strategies that took part in fewer
// rounds than others have less to show for it, which the title must not hide.
func intervalTitle(group []results.Summary) string {
	intervals, ranges := false, false
	for i := range group {
		if p := group[i].Latency().P99; p.Status == results.PerRound {
			intervals, ranges = intervals || p.Coverage > 0, ranges || p.Coverage == 0
		}
	}
	switch {
	case intervals && ranges:
		return "p99 interval\nor range"
	case ranges:
		return "p99 range"
	default:
		return "p99 interval"
	}
}

// marks collects the explanations that a table turns out to need.
type marks map[string]bool

const (
	markStruck    = "! discarded by the audit, see MEASUREMENT VALIDITY"
	markWaited    = "w could be waiting for a core and not the strategy, see MEASUREMENT VALIDITY"
	markMerged    = "~ of all rounds together: one round has too few samples for an interval"
	markMax       = "≥ the largest value seen: too few samples for the percentile"
	markEvents    = "stalls: event-driven, fewer than 5 separate stalls are behind the percentile"
	markRange     = "> longer than the histogram can tell"
	markSaturated = "saturated: cannot keep up with this rate, requests wait longer and longer"
	markModel     = "m statements to the in-process model, not to PostgreSQL"
)

// Percentile is a percentile as tables show it, and what its marks mean; counts says
// whether the timings that it is of do.
func Percentile(counts bool, p results.Percentile) (cell string, notes []string) {
	legend := marks{}
	cell = legend.percentile(counts, p)
	return cell, legend.explained()
}

func (m marks) percentile(counts bool, p results.Percentile) string {
	if p.Status == results.NoSamples {
		return "-"
	}
	if p.Status == results.EventDriven {
		m[markEvents] = true
		return "stalls"
	}
	text := format.NS(p.Value)
	switch {
	case p.Value >= float64(results.MaxDuration):
		m[markRange] = true
		text = "> 1 h"
	case p.Status == results.Merged:
		m[markMerged] = true
		text = "~" + text
	case !p.Shown():
		m[markMax] = true
		text = "≥" + text
	}
	if counts && p.Struck {
		m[markWaited] = true
		return text + "w"
	}
	return m.timing(counts, text)
}

// saturated stands where a strategy cannot keep up with the rate: its response time
// is that of a queue, and grows for as long as the run lasts.
func (m marks) saturated() string {
	m[markSaturated] = true
	return "saturated"
}

// reference renders p50 and p99 of the bare client.
func (m marks) reference(p *results.Percentiles) []string {
	if p == nil {
		return []string{"-", "-"}
	}
	return []string{m.percentile(true, p.P50), m.percentile(true, p.P99)}
}

func (m marks) timing(counts bool, text string) string {
	if counts {
		return text
	}
	m[markStruck] = true
	return text + "!"
}

// sql renders statements per decision, and marks those that went to the model.
func (m marks) sql(sql, model float64, format func(float64) string) string {
	if sql == 0 && model > 0 {
		m[markModel] = true
		return format(model) + "m"
	}
	return format(sql)
}

// lines renders the explanations in a fixed order, after what always holds.
func (m marks) lines(page layout.Page, always string) []string {
	return noteLines(page, format.Join("; ", append([]string{always}, m.explained()...)...))
}

// explained are the explanations in a fixed order.
func (m marks) explained() (out []string) {
	for _, k := range []string{markStruck, markWaited, markMerged, markMax, markEvents, markRange, markSaturated, markModel} {
		if m[k] {
			out = append(out, k)
		}
	}
	return out
}

// noteLines renders what is said below a table.
func noteLines(page layout.Page, text string) []string {
	if text == "" {
		return nil
	}
	return page.Paragraph("  ", text)
}
