package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// sweepSections have what the decision leaves out: all figures of each value, and the setting.
func sweepSections(page layout.Page, f results.File, d *Decision, section func([]string)) {
	series := f.SweepSeries()
	v := sweepView{sweep: f.Sweep}
	var notes figures.Notes
	for i := range series {
		section(append(page.Title(v.seriesName(&series[i])), page.Table(v.table(&series[i], &notes))...))
	}
	section(noteLines(page, noted(waitNote, &notes)))
	section(skippedLines(page, f))
	section(findingLines(page, Findings(f.Summarised())))
	section(entryLines(page, Head(f)))
	section(entryLines(page, d.Setting))
}

const waitNote = "pool wait: of all commands of a request together, for a connection of the pool; " +
	"waited: connections that were not free at once"

// DecideSweep says of a sweep which value to use. It has a row for each value, and a heading above each strategy.
func DecideSweep(f *results.File) (Decision, error) {
	v := sweepView{sweep: f.Sweep}
	if f.Sweep != nil && f.Sweep.Until != "" {
		gate, err := compare.ParseRunGate(f.Sweep.Until)
		if err != nil {
			return Decision{}, fmt.Errorf("the condition of the sweep: %w", err)
		}
		v.until = &gate
	}
	series := f.SweepSeries()
	if len(series) == 0 {
		return Decision{Advice: []string{"Nothing was measured."}}, nil
	}
	// Each series is a setting, with a strategy for each value.
	settings := make([]ranking.Setting, len(series))
	for i := range series {
		for _, p := range series[i].Points {
			settings[i].Strategies = append(settings[i].Strategies, ranking.Classify(p.Summary))
		}
	}
	var d Decision
	d.Advice, d.Untested = v.advice(f, series, settings)
	v.rows(&d, f, series, settings)
	d.Setting = Setting(*f, f.Summarised())
	return d, nil
}

// advice chooses among series, each at the value to use. The values of an option are themselves what there is to choose
// from. A load is not: under it a strategy is as good as at its worst value.
func (v *sweepView) advice(f *results.File, series []results.SweepSeries, settings []ranking.Setting) ([]string, []ranking.Untested) {
	var all []ranking.Strategy
	var fails []string
	names := map[*results.Summary]string{}
	why := map[*results.Summary]string{}
	for i := range series {
		s := &series[i]
		points := settings[i].Strategies
		at := v.chosen(s)
		if at < 0 && v.until != nil {
			fails = append(fails, v.seriesName(s)+": "+v.conclusion(s)+".")
			continue
		}
		if !strings.Contains(v.first().Name, ".") {
			points = []ranking.Strategy{v.atWorst(s, points, at)}
			why[points[0].Summary] = v.conclusion(s)
		} else if at >= 0 {
			why[points[at].Summary] = v.conclusion(s)
		}
		for _, x := range points {
			names[x.Summary] = v.seriesName(s)
			if at >= 0 || len(points) > 1 {
				names[x.Summary] += " at " + v.first().Name + " " + x.Summary.Params.Point[v.first().Name]
			}
		}
		all = append(all, points...)
	}
	if all == nil {
		return append([]string{"No strategy that ran is known to hold " + v.until.String() + "."}, fails...),
			ranking.Among(f, slices.Clone(settings[0].Strategies)).Untested
	}
	s := ranking.Among(f, all)
	for i := range s.Strategies {
		x := &s.Strategies[i]
		x.Label = names[x.Summary]
	}
	best := s.Cheapest()
	if best != nil {
		best.Reason = format.Join("; ", why[best.Summary], best.Reason)
		return append(Advice(false, &s), fails...), s.Untested
	}
	var out []string
	if s.HasCandidates() {
		out = Advice(false, &s)
	}
	for i := range s.Strategies {
		if x := &s.Strategies[i]; why[x.Summary] != "" {
			out = append(out, x.Label+": "+why[x.Summary]+".")
		}
	}
	return append(out, fails...), s.Untested
}

// chosen is the value to use: the knee, or the highest at which the condition holds, or the lowest if
// it holds only from there on; -1 for none.
func (v *sweepView) chosen(s *results.SweepSeries) int {
	if v.until == nil {
		return s.Knee().At
	}
	e := v.until.Along(s)
	if e.From > 0 {
		return e.From
	}
	return e.To
}

// atWorst is a series at the chosen value, or at the last if none is, with the worst verdict of all values.
func (v *sweepView) atWorst(s *results.SweepSeries, points []ranking.Strategy, at int) ranking.Strategy {
	if at < 0 {
		at = len(points) - 1
	}
	x := points[at]
	for i := range points {
		x.Also(&points[i], v.first().Name+" "+s.Points[i].Value)
	}
	return x
}

// rows fills the table.
func (v *sweepView) rows(d *Decision, f *results.File, series []results.SweepSeries, settings []ranking.Setting) {
	t := newVerdicts(f, settings)
	first := &settings[0].Strategies[0]
	d.Title, d.Columns = Policy(first.Summary)+" · "+loadText(f, &settings[0]), t.columns()
	d.Columns[columnStrategy] = layout.Column{Title: v.first().Name, Left: true}
	if v.first().Name == "rate" {
		d.Columns[columnStrategy].Title += ", per s"
	}
	if v.until != nil {
		d.Columns[columnCommands].Title = v.until.String() + " holds"
	}
	for i := range series {
		d.Rows = append(d.Rows, Row{Heading: v.seriesName(&series[i])})
		marks := v.marks(&series[i])
		for j := range settings[i].Strategies {
			x := &settings[i].Strategies[j]
			cells := t.row(x)
			cells[columnStrategy] = series[i].Points[j].Value
			if v.until != nil {
				cells[columnCommands] = marks[j]
			} else {
				cells[columnStrategy] = format.Join(" ", cells[columnStrategy], marks[j])
			}
			d.Rows = append(d.Rows, Row{Strategy: x, Cells: cells})
		}
	}
	t.names = nil // headings have the strategies
	d.Notes = t.notes()
}

// sweepView is what the parts of a sweep's report share.
type sweepView struct {
	sweep *results.Sweep
	until *compare.Gate // nil if no edge is looked for
}

func (v *sweepView) first() *results.Swept { return &v.sweep.Parameters[0] }

// seriesName is the strategy, with the value of the second parameter.
func (v *sweepView) seriesName(s *results.SweepSeries) string {
	if s.Second == "" {
		return format.Plain(s.Strategy)
	}
	return format.Plain(fmt.Sprintf("%s, %s %s", s.Strategy, v.sweep.Parameters[1].Name, s.Second))
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
		return "there is no knee, since " + k.Why
	}
	p := &s.Points[k.At]
	last := &s.Points[len(s.Points)-1]
	at := p.Summary.Throughput.Value
	end := last.Summary.Throughput.Value
	return fmt.Sprintf("the knee is at %s %s, with %s decisions/s; %s brings %s", v.first().Name, p.Value, format.Count(int64(at+0.5)),
		last.Value, thanText(end, at))
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
	name := v.first().Name
	last := len(s.Points) - 1
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

// valueText is a value with its unit, if it is a rate.
func (v *sweepView) valueText(value string) string {
	if v.first().Name != "rate" {
		return value
	}
	if x, ok := results.SweepNumber(value); ok && x == float64(int64(x)) {
		value = format.Count(int64(x))
	}
	return value + "/s"
}

// table has a line for each value.
func (v *sweepView) table(s *results.SweepSeries, notes *figures.Notes) *layout.Grid {
	group := make([]results.Summary, len(s.Points))
	for i := range s.Points {
		group[i] = *s.Points[i].Summary
		group[i].Label = s.Points[i].Value
	}
	g := grid(group, sweepColumns(group[0].AtRate().Params.Loop == results.OpenLoop), notes)
	g.Columns[0] = layout.Column{Title: v.first().Name, Left: true}
	return g
}

func sweepColumns(open bool) []column {
	interval := column{Column: layout.Column{Title: "interval", Optional: true}, cell: throughputInterval}
	latency := columns("p50", "p99")
	latency[0].Over = "service time"
	if open {
		latency[0].Over = "response time"
		latency = append(latency, columns("service.p99")...)
	}
	latency[1].Over = latency[0].Over
	return slices.Concat(columns("throughput"), []column{interval}, latency, columns(figures.Table("sweep")...))
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
		out[i] = "no"
		switch {
		case h.Unknown:
			out[i] = "not known"
		case h.Holds:
			out[i] = "yes"
		}
	}
	return out
}

func throughputInterval(s *results.Summary, _ *figures.Notes) string {
	return figures.Of("throughput").Timing(s).Interval
}
