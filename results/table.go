package results

import (
	"bufio"
	"fmt"
	"io"
)

// WriteTable renders a file for a terminal, within 120 columns: what was measured
// and on what, speed and cost, correctness, declared guarantees, what was skipped,
// and everything that speaks against the figures.
func WriteTable(w io.Writer, f File) error {
	b := bufio.NewWriter(w)
	put := func(lines ...string) {
		for _, l := range lines {
			// A write error sticks to the writer and comes out of Flush.
			_, _ = b.WriteString(l + "\n")
		}
	}
	summaries := Summarise(f.Runs)
	put(headerLines(f)...)
	for _, group := range bySetting(summaries) {
		sortForShow(group)
		put("")
		put(settingLines(f, group)...)
		put("")
		put(speedLines(f, group)...)
		put("")
		put(correctnessLines(group)...)
		if l := guaranteeLines(group); len(l) > 0 {
			put("")
			put(l...)
		}
	}
	if len(summaries) == 0 {
		put("", "No strategy was run.")
	}
	if l := skippedLines(f); len(l) > 0 {
		put("")
		put(l...)
	}
	if l := findingLines(f, summaries); len(l) > 0 {
		put("")
		put(l...)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// bySetting groups what may stand in one table, in order of appearance.
func bySetting(all []Summary) [][]Summary {
	var out [][]Summary
	at := map[string]int{}
	for _, s := range all {
		i, ok := at[s.setting]
		if !ok {
			i = len(out)
			at[s.setting] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	return out
}

// rowsOf fills a grid with one row per strategy, and sets baselines apart.
func rowsOf(g *grid, group []Summary, row func(*Summary) []string) {
	for i := range group {
		s := &group[i]
		if i > 0 && s.Form == formBaseline && group[i-1].Form != formBaseline {
			g.addRule()
		}
		g.add(append([]string{plain(s.Label)}, row(s)...)...)
	}
}

// labelColumn is the first column of every table. Long option lists wrap in it.
var labelColumn = column{title: "strategy", left: true, flexible: true, minimum: 14}

// speedLines renders latency, throughput and cost.
func speedLines(f File, group []Summary) []string {
	open := group[0].Params.Loop == OpenLoop
	simulated := f.Kind == Simulated
	title := fmt.Sprintf("SPEED AND COST  service time at concurrency %d, closed loop", group[0].Params.Workers)
	if open {
		title = fmt.Sprintf("SPEED AND COST  response time from the intended start, open loop at %s requests/s", digits3(group[0].Params.RatePerS))
	}
	if simulated {
		title = "MODELLED LATENCY AND COST  virtual time; no statement about real stores"
	}
	g := grid{columns: []column{labelColumn, {title: "p50"}, {title: "p99"}, {title: intervalTitle(group)}, {title: "p99.9"}}}
	if open {
		g.columns = append(g.columns, column{title: "service\np50"}, column{title: "service\np99"})
	}
	if !simulated {
		g.columns = append(g.columns, column{title: "decisions\nper s"})
		if !open {
			g.columns = append(g.columns, column{title: "ratio to\nINCR loop"})
		}
	}
	g.columns = append(g.columns, column{title: "commands"}, column{title: "trips"}, column{title: "SQL"}, column{title: "bytes"})
	legend := marks{}
	rowsOf(&g, group, func(s *Summary) []string {
		cells := []string{
			legend.percentile(s, s.Latency.P50), legend.percentile(s, s.Latency.P99), p99Interval(s.Latency.P99), legend.percentile(s, s.Latency.P999),
		}
		if open {
			service := Percentiles{P50: Percentile{Status: NoSamples}, P99: Percentile{Status: NoSamples}}
			if s.Service != nil {
				service = *s.Service
			}
			cells = append(cells, legend.percentile(s, service.P50), legend.percentile(s, service.P99))
		}
		if !simulated {
			cells = append(cells, legend.timing(s, formatCount(int64(s.Throughput.Value+0.5))))
			if !open {
				cells = append(cells, ratioCell(s))
			}
		}
		return append(cells, formatPer(s.Cost.Commands), formatPer(s.Cost.RoundTrips), legend.sql(s), formatPer(s.Cost.Bytes))
	})
	out := append([]string{title}, g.lines(tableWidth)...)
	return append(out, legend.lines("commands, round trips, SQL statements and bytes are per decision, a sample of the run")...)
}

func ratioCell(s *Summary) string {
	if s.Ratio.Rounds == 0 {
		return "-"
	}
	return digits3(s.Ratio.Value)
}

func p99Interval(p Percentile) string {
	if p.Status != PerRound || p.Rounds < 2 {
		return ""
	}
	return formatNSInterval(p.Value, p.Lo, p.Hi)
}

// intervalTitle says what the brackets are. Strategies that took part in fewer
// rounds than others have less to show for it, which the title must not hide.
func intervalTitle(group []Summary) string {
	intervals, ranges := false, false
	for i := range group {
		if p := group[i].Latency.P99; p.Status == PerRound {
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
	markStruck = "! the audit struck this timing, see below"
	markMerged = "~ of all rounds together: one round has too few samples for an interval"
	markMax    = "≥ the largest value seen: too few samples, or fewer than 5 separate stalls, for the percentile"
	markRange  = "> longer than the histogram can tell"
	markModel  = "m statements to the in-process model, not to PostgreSQL"
)

func (m marks) percentile(s *Summary, p Percentile) string {
	if p.Status == NoSamples {
		return "-"
	}
	text := formatNS(p.Value)
	switch {
	case p.Value >= float64(MaxDuration):
		m[markRange] = true
		text = "> 1 h"
	case p.Status == Merged:
		m[markMerged] = true
		text = "~" + text
	case !p.Shown():
		m[markMax] = true
		text = "≥" + text
	}
	return m.timing(s, text)
}

func (m marks) timing(s *Summary, text string) string {
	if s.TimingsCount {
		return text
	}
	m[markStruck] = true
	return text + "!"
}

func (m marks) sql(s *Summary) string {
	if s.Cost.SQL == 0 && s.Cost.ModelSQL > 0 {
		m[markModel] = true
		return formatPer(s.Cost.ModelSQL) + "m"
	}
	return formatPer(s.Cost.SQL)
}

// lines renders the explanations in a fixed order, after what always holds.
func (m marks) lines(always string) []string {
	text := always
	var out []string
	for _, k := range []string{markStruck, markMerged, markMax, markRange, markModel} {
		if m[k] {
			text += "; " + k
		}
	}
	for _, l := range wrap(text, tableWidth-2) {
		out = append(out, "  "+l)
	}
	return out
}
