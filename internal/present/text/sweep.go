package text

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/compare"
	"github.com/quotabench/quotabench/internal/figures"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Sweep renders the file of a sweep for a terminal: what it shows, in one line for each
// strategy, a table for each strategy with a line per value, what was not tested, and the setting.
func Sweep(w io.Writer, page layout.Page, f results.File) error {
	series := f.SweepSeries()
	v, err := newSweepView(page, f.Sweep)
	if err != nil {
		return err
	}
	return write(w, func(section func([]string)) {
		shows := page.Title(v.title())
		for i := range series {
			name := "  " + layout.Pad(v.seriesName(&series[i]), v.widest(series)) + "  "
			shows = append(shows, page.Paragraph(name, format.Plain(v.conclusion(&series[i])))...)
		}
		if len(series) == 0 {
			shows = append(shows, "  Nothing was measured.")
		}
		section(shows)
		for i := range series {
			section(v.table(&series[i]))
		}
		section(v.below(series))
		section(skippedLines(page, f))
		section(findingLines(page, Findings(f.Summarised())))
		section(entryLines(page, Head(f)))
		section(entryLines(page, v.setting(series)))
	})
}

// sweepView is what the parts of a sweep's report share.
type sweepView struct {
	page  layout.Page
	sweep *results.Sweep
	until *compare.Gate // nil where no edge is looked for
	notes figures.Notes
}

func newSweepView(page layout.Page, s *results.Sweep) (*sweepView, error) {
	v := &sweepView{sweep: s, page: page}
	if s.Until == "" {
		return v, nil
	}
	gate, err := compare.ParseRunGate(s.Until)
	if err != nil {
		return nil, fmt.Errorf("the condition of the sweep: %w", err)
	}
	v.until = &gate
	return v, nil
}

// SweepConclusions are what a sweep shows, an entry for each of [results.File.SweepSeries].
func SweepConclusions(f results.File) (out []Entry, err error) {
	v, err := newSweepView(layout.Page{}, f.Sweep)
	if err != nil {
		return nil, err
	}
	series := f.SweepSeries()
	for i := range series {
		out = append(out, Entry{v.seriesName(&series[i]), format.Plain(v.conclusion(&series[i]))})
	}
	return out, nil
}

// SweepSetting is what all points of a sweep have in common.
func SweepSetting(f results.File) ([]Entry, error) {
	v, err := newSweepView(layout.Page{}, f.Sweep)
	if err != nil {
		return nil, err
	}
	return v.setting(f.SweepSeries()), nil
}

func (v *sweepView) first() *results.Swept { return &v.sweep.Parameters[0] }

// title names what varies.
func (v *sweepView) title() string {
	if v.sweep.Search {
		p := v.first()
		return fmt.Sprintf("SEARCH  highest rate at which %s holds, between %s and %s requests/s", v.until, countText(p.Values[0]),
			countText(p.Values[1]))
	}
	var parts []string
	for _, p := range v.sweep.Parameters {
		parts = append(parts, fmt.Sprintf("%s (%s)", p.Name, format.Plural(int64(len(p.Values)), "value", "values")))
	}
	return "SWEEP  of " + strings.Join(parts, " by ")
}

func countText(value string) string {
	if x, ok := results.SweepNumber(value); ok && x == float64(int64(x)) {
		return format.Count(int64(x))
	}
	return value
}

// seriesName is the strategy, with the value of the second parameter.
func (v *sweepView) seriesName(s *results.SweepSeries) string {
	if s.Second == "" {
		return format.Plain(s.Strategy)
	}
	return format.Plain(fmt.Sprintf("%s, %s %s", s.Strategy, v.sweep.Parameters[1].Name, s.Second))
}

func (v *sweepView) widest(all []results.SweepSeries) (wide int) {
	for i := range all {
		wide = max(wide, layout.TextWidth(v.seriesName(&all[i])))
	}
	return wide
}

// setting is what all points have in common.
func (v *sweepView) setting(all []results.SweepSeries) (out []Entry) {
	if len(all) == 0 {
		return nil
	}
	s := all[0].Points[0].Summary
	p := s.Params
	entry := adder(&out)
	fixed := func(name, text string) string {
		if _, varies := p.Point[name]; varies {
			return ""
		}
		return text
	}
	entry("policy", format.Join(" · ", format.Join(": ", s.Policy,
		format.Join(", ", fixed("limit", format.Units(p.Limit, p.Unit)), p.WindowText()))))
	asked := p
	asked.Workload = maps.Clone(p.Workload)
	maps.DeleteFunc(asked.Workload, func(name, _ string) bool { return p.Point[name] != "" })
	entry("asked for", streamText(asked))
	entry("outages", outagesText(p.Outages))
	loop := "closed loop: callers wait for each answer"
	if p.Loop == results.OpenLoop {
		loop = format.Join(", ", "open loop", p.Arrivals, fixed("rate", format.Digits(p.RatePerS)+" requests/s"))
	}
	bound := boundText(p)
	if p.Point["rate"] != "" && p.DurationNS > 0 {
		bound = ""
	}
	entry("load", format.Join(" · ", loop, fixed("workers", format.Plural(int64(p.Workers), "worker", "workers")),
		fixed("instances", format.Plural(int64(p.Instances), "instance", "instances")), bound))
	entry("connections", fixed("pool", poolText(p)))
	entry("rounds", fmt.Sprintf("%s of each point, the points in random order within a round; "+
		"percentiles are those of all kept rounds together, decisions per second their mean%s; %s",
		roundsOfPoints(all), v.intervalsText(all), keptOfPoints(all)))
	return out
}

// roundsOfPoints is how many rounds points have: an interrupted sweep and a search have
// more of some than of others.
func roundsOfPoints(all []results.SweepSeries) string {
	lo, hi := all[0].Points[0].Summary.Rounds, 0
	for i := range all {
		for _, p := range all[i].Points {
			lo, hi = min(lo, p.Summary.Rounds), max(hi, p.Summary.Rounds)
		}
	}
	if lo == hi {
		return strconv.Itoa(hi)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// intervalsText says what the intervals of the decisions per second are.
func (v *sweepView) intervalsText(all []results.SweepSeries) string {
	for i := range all {
		for _, p := range all[i].Points {
			if f := p.Summary.Throughput; f.Rounds > 1 && f.Coverage == 0 {
				return ", intervals the range of the rounds"
			}
		}
	}
	return ", intervals have about 95 % confidence"
}

// conclusion is what one series shows, in one line.
func (v *sweepView) conclusion(s *results.SweepSeries) string {
	if v.until != nil {
		return v.edge(s)
	}
	return v.knee(s)
}

// knee says where more of the parameter stops to bring decisions per second.
func (v *sweepView) knee(s *results.SweepSeries) string {
	k := s.Knee()
	if k.At < 0 {
		return "no knee: " + k.Why
	}
	p, last := &s.Points[k.At], &s.Points[len(s.Points)-1]
	at, end := p.Summary.Throughput.Value, last.Summary.Throughput.Value
	return fmt.Sprintf("knee at %s %s: %s decisions/s; %s brings %s", v.first().Name, p.Value, format.Count(int64(at+0.5)), last.Value,
		thanText(end, at))
}

// thanText is how much a figure is above or below another one.
func thanText(x, than float64) string {
	if x >= than {
		return format.Pct(100*(x-than)/than) + " more"
	}
	return format.Pct(100*(than-x)/than) + " less"
}

// edge says from where on, or up to where, the condition holds.
func (v *sweepView) edge(s *results.SweepSeries) string {
	e := v.until.Along(s)
	name, last := v.first().Name, len(s.Points)-1
	at := func(i int) string { return fmt.Sprintf("%s (%s)", v.valueText(s.Points[i].Value), e.Held[i].Detail) }
	not := func(i int) string {
		if e.Held[i].Unknown {
			return "is not known to at " + at(i)
		}
		return "not at " + at(i)
	}
	switch {
	case !slices.ContainsFunc(e.Held, func(h compare.Held) bool { return !h.Unknown }):
		return fmt.Sprintf("it is not known whether %s holds: %s", v.until, e.Held[0].Detail)
	case e.Stretches == 0 && v.sweep.Search && e.Held[0].Unknown:
		return fmt.Sprintf("it is not known whether %s holds at the lowest rate, %s", v.until, at(0))
	case e.Stretches == 0 && v.sweep.Search:
		return fmt.Sprintf("%s does not hold at the lowest rate, %s", v.until, at(0))
	case e.Stretches == 0:
		return fmt.Sprintf("%s holds at no value of %s: %s at the first and %s at the last", v.until, name, e.Held[0].Detail, e.Held[last].Detail)
	case e.Stretches > 1:
		var holds []string
		for i, h := range e.Held {
			if h.Holds {
				holds = append(holds, at(i))
			}
		}
		return fmt.Sprintf("%s has no one edge, it holds at %s %s and not in between", v.until, name, strings.Join(holds, ", "))
	case e.From == 0 && e.To == last:
		return fmt.Sprintf("%s holds at every value of %s, up to %s", v.until, name, at(last))
	case e.From == 0:
		return fmt.Sprintf("%s holds up to %s %s, and %s", v.until, name, at(e.To), not(e.To+1))
	case e.To == last:
		return fmt.Sprintf("%s holds from %s %s on, and %s", v.until, name, at(e.From), not(e.From-1))
	default:
		return fmt.Sprintf("%s holds from %s %s to %s, and %s and %s", v.until, name, at(e.From), at(e.To), not(e.From-1), not(e.To+1))
	}
}

// valueText is a value with its unit, where it is a rate.
func (v *sweepView) valueText(value string) string {
	if v.first().Name == "rate" {
		return countText(value) + "/s"
	}
	return value
}

// table has a line for each value.
func (v *sweepView) table(s *results.SweepSeries) []string {
	all := v.columns(s.Points[0].Summary.AtRate().Params.Loop == results.OpenLoop)
	g := layout.Grid{Columns: []layout.Column{{Title: v.first().Name, Left: true}}}
	for _, c := range all {
		g.Columns = append(g.Columns, c.Column)
	}
	marks := v.marks(s)
	g.Columns = append(g.Columns, layout.Column{Left: true, Optional: true})
	if v.until != nil {
		g.Columns[len(g.Columns)-1] = layout.Column{Title: "holds", Left: true}
	}
	for i := range s.Points {
		cells := cellsOf(s.Points[i].Summary, all, &v.notes)
		g.Add(append(append([]string{format.Plain(s.Points[i].Value)}, cells...), marks[i])...)
	}
	return append(v.page.Title(v.seriesName(s)), v.page.Table(&g)...)
}

func (v *sweepView) columns(open bool) []column {
	interval := column{Column: layout.Column{Title: "interval", Optional: true}, cell: throughputInterval}
	latency := columns("p50", "p99")
	latency[0].Over = "service time"
	if open {
		latency[0].Over = "response time"
		latency = append(latency, columns("service.p99")...)
	}
	latency[1].Over = latency[0].Over
	return slices.Concat(columns("throughput"), []column{interval}, latency,
		columns("leak-pct", "false-rejects-pct", "errors", "pool-wait", "pool-waited"))
}

// marks say at which values a condition holds, or where the knee is.
func (v *sweepView) marks(s *results.SweepSeries) []string {
	out := make([]string, len(s.Points))
	if v.until == nil {
		if knee := s.Knee().At; knee >= 0 {
			out[knee] = "◀ knee"
		}
		return out
	}
	for i, h := range v.until.Along(s).Held {
		out[i] = heldText(h)
	}
	return out
}

func throughputInterval(s *results.Summary, _ *figures.Notes) string {
	f := s.Throughput
	if f.Rounds < 2 {
		return ""
	}
	return format.Count(int64(f.Lo+0.5)) + " to " + format.Count(int64(f.Hi+0.5))
}

func heldText(h compare.Held) string {
	switch {
	case h.Unknown:
		return "?"
	case h.Holds:
		return "yes"
	default:
		return "no"
	}
}

// below explains what the tables turn out to hold.
func (v *sweepView) below(all []results.SweepSeries) []string {
	always := "knee: the value farthest above the straight line between the ends of the curve of decisions/s, by more than the rounds vary"
	if v.until != nil {
		always = "holds: " + v.until.String() + "; ?: not known, which is taken for no"
	}
	if slices.ContainsFunc(all, func(s results.SweepSeries) bool { return s.Points[0].Summary.AtRate().PoolWait != nil }) {
		always += "; pool wait: of all commands of a request together, for a connection of the pool; " +
			"waited: connections that were not free at once"
	}
	return noteLines(v.page, noted(always, &v.notes))
}
