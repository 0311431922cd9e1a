package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// sweepSections have what the decision leaves out: all figures of each value, and the setting.
func sweepSections(doc *document.Document, file results.File, decision *Decision) {
	series := file.SweepSeries()
	view := sweepView{file: &file, sweep: file.Sweep}
	var notes figures.Notes
	for i := range series {
		table := view.table(&series[i], &notes)
		table.Title = view.seriesName(&series[i])
		doc.Section(table)
	}
	doc.Section(&document.Paragraph{Head: "  ", Text: noted(waitNote, &notes)})
	doc.Section(skipped(file)...)
	doc.Section(validity(Findings(file.Summarised()))...)
	doc.Section(entries(Head(file))...)
	doc.Section(entries(decision.Setting)...)
}

const waitNote = "pool wait: of all commands of a request together, for a connection of the pool; " +
	"waited: connections that were not free at once"

// DecideSweep says of a sweep which value to use. It has a row for each value, and a heading above each strategy.
func DecideSweep(file *results.File) (Decision, error) {
	view := sweepView{file: file, sweep: file.Sweep}
	if file.Sweep != nil && file.Sweep.Until != "" {
		gate, err := compare.ParseRunGate(file.Sweep.Until)
		if err != nil {
			return Decision{}, fmt.Errorf("the condition of the sweep: %w", err)
		}
		view.until = &gate
	}
	series := file.SweepSeries()
	if len(series) == 0 {
		return Decision{Advice: []string{"Nothing was measured."}, Table: &document.Table{}}, nil
	}
	// Each series is a setting, with a strategy for each value.
	settings := make([]ranking.Setting, len(series))
	for i := range series {
		for _, point := range series[i].Points {
			settings[i].Strategies = append(settings[i].Strategies, ranking.Classify(point.Summary))
		}
	}
	var decision Decision
	decision.Advice, decision.Untested = view.advice(file, series, settings)
	view.rows(&decision, file, series, settings)
	decision.Setting = Setting(*file, file.Summarised())
	return decision, nil
}

// advice chooses among series, each at the value to use. The values of an option are themselves what there is to choose
// from. A load is not: under it a strategy is as good as at its worst value.
func (v *sweepView) advice(file *results.File, series []results.SweepSeries,
	settings []ranking.Setting) ([]string, []ranking.Untested) {
	var all []ranking.Strategy
	var fails []string
	names := map[*results.Summary]string{}
	why := map[*results.Summary]string{}
	for i := range series {
		sweepSeries := &series[i]
		points := settings[i].Strategies
		at := v.chosen(sweepSeries)
		if at < 0 && v.until != nil {
			fails = append(fails, v.seriesName(sweepSeries)+": "+v.conclusion(sweepSeries)+".")
			continue
		}
		if !strings.Contains(v.first().Name, ".") {
			points = []ranking.Strategy{v.atWorst(sweepSeries, points, at)}
			why[points[0].Summary] = v.conclusion(sweepSeries)
		} else if at >= 0 {
			why[points[at].Summary] = v.conclusion(sweepSeries)
		}
		for _, strategy := range points {
			names[strategy.Summary] = v.seriesName(sweepSeries)
			if at >= 0 || len(points) > 1 {
				names[strategy.Summary] += " at " + v.first().Name + " " + strategy.Summary.Params.Point[v.first().Name]
			}
		}
		all = append(all, points...)
	}
	if all == nil {
		return append([]string{"No strategy that ran is known to hold " + v.until.String() + "."}, fails...),
			ranking.Among(file, slices.Clone(settings[0].Strategies)).Untested
	}
	setting := ranking.Among(file, all)
	for i := range setting.Strategies {
		strategy := &setting.Strategies[i]
		strategy.Label = names[strategy.Summary]
	}
	return append(adviceOnPoints(&setting, why), fails...), setting.Untested
}

// adviceOnPoints is the answer among points of a sweep; why has what was concluded of the series of each.
func adviceOnPoints(setting *ranking.Setting, why map[*results.Summary]string) (out []string) {
	best := setting.Cheapest()
	if best != nil {
		best.Reason = format.Join("; ", why[best.Summary], best.Reason)
		return Advice(false, setting)
	}
	if setting.HasCandidates() {
		out = Advice(false, setting)
	}
	for i := range setting.Strategies {
		if strategy := &setting.Strategies[i]; why[strategy.Summary] != "" {
			out = append(out, strategy.Label+": "+why[strategy.Summary]+".")
		}
	}
	return out
}

// chosen is the value to use: the highest at which the condition holds, or the lowest if it holds only from there on;
// -1 for none.
func (v *sweepView) chosen(series *results.SweepSeries) int {
	if v.until == nil {
		return -1
	}
	edge := v.until.Along(v.file, series)
	if edge.From > 0 {
		return edge.From
	}
	return edge.To
}

// atWorst is a series at the chosen value, or at the last if none is, with the worst verdict of all values.
func (v *sweepView) atWorst(series *results.SweepSeries, points []ranking.Strategy, at int) ranking.Strategy {
	if at < 0 {
		at = len(points) - 1
	}
	strategy := points[at]
	for i := range points {
		strategy.TakeWorse(&points[i], v.first().Name+" "+series.Points[i].Value)
	}
	return strategy
}

// rows fills the table.
func (v *sweepView) rows(decision *Decision, file *results.File, series []results.SweepSeries,
	settings []ranking.Setting) {
	verdicts := newVerdicts(file, settings)
	table := verdicts.table()
	table.Title = Policy(settings[0].Strategies[0].Summary) + " · " + loadText(file, &settings[0])
	table.Columns[columnStrategy] = document.Column{Title: v.first().Name, Left: true}
	if v.first().Name == "rate" {
		table.Columns[columnStrategy].Title += ", per s"
	}
	last := slices.IndexFunc(table.Columns, func(column document.Column) bool { return column.Key == "all-commands" })
	if v.until != nil {
		table.Columns[last].Narrow = v.until.String() + " holds"
	}
	for i := range series {
		table.AddHeading(v.seriesName(&series[i]), document.Neutral)
		marks := v.marks(&series[i])
		for j := range settings[i].Strategies {
			row := verdicts.row(&settings[i].Strategies[j], document.Always)
			if v.until != nil {
				row.Cells[last] = document.Cell{Text: marks[j]}
			}
			row.Cells[columnStrategy] = document.Cell{Text: series[i].Points[j].Value}
			table.Rows = append(table.Rows, row)
		}
	}
	verdicts.names = nil // headings have the strategies
	decision.show(table, verdicts)
}

// sweepView is what the parts of a sweep's report share.
type sweepView struct {
	file  *results.File
	sweep *results.Sweep
	until *compare.Gate // nil if no edge is looked for
}

func (v *sweepView) first() *results.Swept { return &v.sweep.Parameters[0] }

// seriesName is the strategy, with the value of the second parameter.
func (v *sweepView) seriesName(series *results.SweepSeries) string {
	if series.Second == "" {
		return format.Plain(series.Strategy)
	}
	return format.Plain(fmt.Sprintf("%s, %s %s", series.Strategy, v.sweep.Parameters[1].Name, series.Second))
}

// conclusion says where the condition holds, in one line; it is empty if there is none.
func (v *sweepView) conclusion(series *results.SweepSeries) string {
	if v.until == nil {
		return ""
	}
	return v.edge(series)
}

// edge says from where on, or up to where, the condition holds.
func (v *sweepView) edge(series *results.SweepSeries) string {
	edge := v.until.Along(v.file, series)
	name := v.first().Name
	last := len(series.Points) - 1
	at := func(i int) string {
		return fmt.Sprintf("%s (%s)", v.valueText(series.Points[i].Value), edge.Held[i].Detail)
	}
	not := func(i int) string {
		if edge.Held[i].Unknown {
			return "is not known to at " + at(i)
		}
		return "not at " + at(i)
	}
	switch {
	case !slices.ContainsFunc(edge.Held, func(held compare.Held) bool { return !held.Unknown }):
		return fmt.Sprintf("it is not known whether %s holds: %s", v.until, edge.Held[0].Detail)
	case edge.Stretches == 0 && v.sweep.Search && edge.Held[0].Unknown:
		return fmt.Sprintf("it is not known whether %s holds at the lowest rate, %s", v.until, at(0))
	case edge.Stretches == 0 && v.sweep.Search:
		return fmt.Sprintf("%s does not hold at the lowest rate, %s", v.until, at(0))
	case edge.Stretches == 0:
		return fmt.Sprintf("%s holds at no value of %s: %s at the first and %s at the last", v.until, name,
			edge.Held[0].Detail, edge.Held[last].Detail)
	case edge.Stretches > 1:
		var holds []string
		for i, held := range edge.Held {
			if held.Holds {
				holds = append(holds, at(i))
			}
		}
		return fmt.Sprintf("%s has no one edge, it holds at %s %s and not in between", v.until, name,
			strings.Join(holds, ", "))
	case edge.From == 0 && edge.To == last:
		return fmt.Sprintf("%s holds at every value of %s, up to %s", v.until, name, at(last))
	case edge.From == 0:
		return fmt.Sprintf("%s holds up to %s %s, and %s", v.until, name, at(edge.To), not(edge.To+1))
	case edge.To == last:
		return fmt.Sprintf("%s holds from %s %s on, and %s", v.until, name, at(edge.From), not(edge.From-1))
	default:
		return fmt.Sprintf("%s holds from %s %s to %s, and %s and %s", v.until, name, at(edge.From), at(edge.To),
			not(edge.From-1), not(edge.To+1))
	}
}

// valueText is a value with its unit, if it is a rate.
func (v *sweepView) valueText(value string) string {
	if v.first().Name != "rate" {
		return value
	}
	if x, ok := stat.ParseValue(value); ok && x == float64(int64(x)) {
		value = format.Count(int64(x))
	}
	return value + "/s"
}

// table has a line for each value.
func (v *sweepView) table(series *results.SweepSeries, notes *figures.Notes) *document.Table {
	group := make([]results.Summary, len(series.Points))
	for i := range series.Points {
		group[i] = *series.Points[i].Summary
		group[i].Label = series.Points[i].Value
	}
	g := grid(group, sweepColumns(group[0].AtRate().Params.Loop == codes.OpenLoop), notes)
	g.Columns[0] = document.Column{Title: v.first().Name, Left: true}
	return g
}

func sweepColumns(open bool) []document.FigureColumn {
	interval := document.FigureColumn{Column: document.Column{Title: "interval", Optional: true}}
	interval.Show(throughputInterval)
	latency := document.Figures("p50", "p99")
	latency[0].Over = "service time"
	if open {
		latency[0].Over = "response time"
		latency = append(latency, document.Figures("service.p99")...)
	}
	latency[1].Over = latency[0].Over
	return slices.Concat(document.Figures("throughput"), []document.FigureColumn{interval}, latency,
		document.Figures(figures.Table("sweep")...))
}

// marks say at which values the condition holds; none if there is no condition.
func (v *sweepView) marks(series *results.SweepSeries) []string {
	if v.until == nil {
		return nil
	}
	out := make([]string, len(series.Points))
	for i, held := range v.until.Along(v.file, series).Held {
		out[i] = "no"
		switch {
		case held.Unknown:
			out[i] = "not known"
		case held.Holds:
			out[i] = "yes"
		}
	}
	return out
}

func throughputInterval(summary *results.Summary, _ *figures.Notes) string {
	return figures.Of("throughput").Timing(summary).Interval
}
