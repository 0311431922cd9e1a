package text

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// verdicts makes the rows of the table to decide from, and the notes that they need. The columns of figures are the
// table "decision" of the figures, and those of a brief table the table "answer".
type verdicts struct {
	figures   []document.FigureColumn
	names     map[string]string // short, by label
	known     []string          // of those that held the limit, and that a search broke
	rows      []results.Summary // of the brief table
	all       []results.Summary
	marks     figures.Notes // of the brief table
	fullMarks figures.Notes
}

// columnStrategy is the first column, which has the value in a sweep.
const columnStrategy = 0

// newVerdicts takes for each latency the unit in which the smallest is not below 1.
func newVerdicts(file *results.File, settings []ranking.Setting) *verdicts {
	var all []*ranking.Strategy
	for i := range settings {
		all = append(all, candidates(&settings[i])...)
	}
	v := &verdicts{names: shortNames(all)}
	simulated := file.Kind == results.Simulated
	for _, column := range document.Figures(figures.Table("decision")...) {
		if simulated && column.Key == "throughput" {
			continue // a simulation has none
		}
		v.figures = append(v.figures, decisionColumn(column, simulated, all))
	}
	return v
}

// decisionColumn is the column of a figure in the table to decide from.
func decisionColumn(column document.FigureColumn, simulated bool, all []*ranking.Strategy) document.FigureColumn {
	figure := figures.Of(column.Key)
	column.Over = ""
	column.Optional = false
	column.Title = cmp.Or(shortTitles[column.Key], figure.Title())
	column.Narrow = narrowTitles[column.Key]
	if !slices.Contains(figures.Table("answer"), column.Key) {
		column.Only = document.Full
	}
	if figure.Counts == figures.Timed {
		return timingColumn(column, simulated, all)
	}
	order := figures.Of(cmp.Or(sortedBy[column.Key], column.Key))
	aside := asides[column.Key]
	bad := slices.Contains(faulty, column.Key)
	column.Wrap = column.Key == "errors-pct"
	column.Cell = func(summary *results.Summary, notes *figures.Notes) document.Cell {
		cell := document.Cell{Text: figure.Text(summary, notes)}
		if figure.Unit == figures.PerDecision {
			cell.Narrow = format.TrimZeros(cell.Text)
		}
		value, err := order.Value(summary)
		if err != nil {
			cell.Bad = bad
			return cell
		}
		cell.Number = &value
		cell.Bad = bad && value > 0
		if aside != nil {
			cell.Aside = aside(summary)
		}
		return cell
	}
	return column
}

// What the columns of figures have in addition to their declarations, by key.
var (
	// shortTitles replace the names of figures.
	shortTitles = map[string]string{"throughput": "decisions/s", "all-commands": "commands"}
	// narrowTitles are those of the brief table.
	narrowTitles = map[string]string{"all-commands": "commands\nper decision"}
	// sortedBy are figures by which rows are sorted in place of the one that is shown.
	sortedBy = map[string]string{"leak": "leak-pct", "false-rejects": "false-rejects-pct"}
	// faulty are figures that speak against a strategy if they are above 0, or if they do not count.
	faulty = []string{"leak", "false-rejects", "errors-pct"}
	// asides stand below figures.
	asides = map[string]func(*results.Summary) string{
		"leak": leakAside, "leak-worst": boundAside, "throughput": ratioAside, "all-commands": statementsAside,
		"errors-pct": func(summary *results.Summary) string { return strings.Join(figures.Errors(summary), ", ") },
	}
)

func leakAside(summary *results.Summary) string {
	leak := &summary.Leak
	switch {
	case leak.Possible > 0:
		return format.Pct(leak.PctOfLimit) + " of limit"
	case leak.Trials > 0:
		return "≤ " + format.Pct(100*stat.RateBound(leak.Trials)) + " of trials"
	}
	return ""
}

func boundAside(summary *results.Summary) string {
	if clause := figures.Strictest(summary); figures.Bounded(clause) {
		return "bound " + format.Count(clause.Bound)
	}
	return "no bound"
}

func ratioAside(summary *results.Summary) string {
	if summary.Ratio.Rounds == 0 {
		return ""
	}
	return format.Digits(summary.Ratio.Value) + " × INCR"
}

func statementsAside(summary *results.Summary) string {
	if sql := summary.Cost.SQL + summary.Cost.ModelSQL; sql > 0 {
		return format.Per(sql) + " SQL"
	}
	return ""
}

// timingColumn shows a timing: with its own unit, and in the brief table in one unit for all strategies, with its
// interval.
func timingColumn(column document.FigureColumn, simulated bool, all []*ranking.Strategy) document.FigureColumn {
	figure := figures.Of(column.Key)
	title, unit := timingTitle(&column, simulated, all)
	column.Narrow = title
	column.Left = true
	column.Flexible = true
	column.Minimum = 11
	column.Optional = true
	if slices.ContainsFunc(all, func(strategy *ranking.Strategy) bool {
		return strategy.Summary.Latency().P50.Coverage > 0 || strategy.Summary.Throughput.Coverage > 0
	}) {
		column.Over = "with 95 % intervals"
	}
	aside := asides[column.Key]
	column.Cell = func(summary *results.Summary, notes *figures.Notes) document.Cell {
		cell := document.Cell{
			Text:   figure.Text(summary, notes),
			Narrow: figure.TimingIn(summary, figures.Scale{Length: unit}).String(),
			Aside:  figure.Timing(summary).Interval,
			Number: duration(figure, summary),
			Bad:    figure.Unit == figures.Nanoseconds && summary.Overloaded(),
		}
		if aside != nil {
			cell.Aside = aside(summary)
		}
		return cell
	}
	return column
}

// duration is what rows are sorted by in a column of timings: of a strategy that cannot keep up, the longest one.
func duration(figure *figures.Figure, summary *results.Summary) *float64 {
	if figure.Unit != figures.Nanoseconds {
		value, err := figure.Value(summary)
		if err != nil {
			return nil
		}
		return &value
	}
	percentile := figure.Percentile(summary)
	longest := float64(bounds.MaxRecorded)
	switch {
	case summary.Overloaded():
		return &longest
	case percentile.Rounds > 0:
		return &percentile.Value
	}
	return nil
}

// thousands is the unit of throughputs none of which is lower.
const thousands = 1000

// timingTitle heads a column in the brief table, and is the unit of its figures.
func timingTitle(column *document.FigureColumn, simulated bool, all []*ranking.Strategy) (title string, unit float64) {
	figure := figures.Of(column.Key)
	if figure.Unit != figures.Nanoseconds {
		slow := func(strategy *ranking.Strategy) bool { return strategy.Summary.Throughput.Value < thousands }
		if slices.ContainsFunc(all, slow) {
			return column.Title, 1
		}
		return column.Title + ",\nthousands", thousands
	}
	var values []float64
	for _, strategy := range all {
		percentile := figure.Percentile(strategy.Summary)
		if percentile.Rounds > 0 {
			values = append(values, percentile.Value)
		}
	}
	return latencyTitle(column.Key, simulated, values)
}

// mostDigits is above what a latency of a column has in its unit: a column of microseconds and of seconds has
// milliseconds, and the former below 1.
const mostDigits = 100_000

// latencyTitle heads a column of latencies in nanoseconds, in the unit in which the smallest that is not 0 is not below
// 1, or in the next one if the largest is too long then.
func latencyTitle(name string, modelled bool, all []float64) (title string, unit float64) {
	title = name
	if modelled {
		title = "modelled " + name
	}
	all = slices.DeleteFunc(all, func(ns float64) bool { return ns == 0 })
	if len(all) == 0 {
		return title, 1
	}
	unit, symbol := format.TimeUnit(slices.Min(all))
	if slices.Max(all)/unit >= mostDigits {
		unit, symbol = format.TimeUnit(thousands * unit)
	}
	return title + ", " + symbol, unit
}

// shortNames are strategies without their options, by label, where that tells them apart.
func shortNames(all []*ranking.Strategy) map[string]string {
	labels := map[string][]string{} // by name
	for _, strategy := range all {
		labels[strategy.Summary.Strategy] = collect.Union(labels[strategy.Summary.Strategy], strategy.Label)
	}
	short := map[string]string{}
	for strategy, texts := range labels {
		if len(texts) == 1 {
			short[texts[0]] = strategy
		}
	}
	return short
}

// table has no rows yet.
func (v *verdicts) table() *document.Table {
	table := &document.Table{Columns: []document.Column{
		{Title: "strategy", Left: true, Flexible: true, Minimum: 18},
		{Title: "verdict", Left: true, Tone: ToneOf, Only: document.Brief},
		{Title: "group", Left: true, Only: document.Full},
		{Title: "most admitted\nin a window", Only: document.Brief},
	}}
	table.Place(v.figures)
	table.Columns = append(table.Columns, document.Column{
		Title: "guarantee", Doc: "what the strategy declares, and whether it was kept", Left: true, Only: document.Full,
	})
	return table
}

// row is that of a strategy, in the brief table if that has it.
func (v *verdicts) row(strategy *ranking.Strategy, extent document.Extent) document.Row {
	summary := strategy.Summary
	var marks figures.Notes
	cells := []document.Cell{
		{Text: strategy.Label, Narrow: format.Plain(v.name(strategy))},
		{Text: strategy.Group.Verdict()},
		groupCell(strategy),
		{Text: mostAdmitted(strategy.Judged)},
	}
	cells = append(cells, document.Cells(summary, v.figures, &marks)...)
	cells = append(cells, guaranteeCell(summary))
	v.fullMarks.Merge(&marks)
	v.all = append(v.all, *summary)
	if extent != document.Full {
		v.marks.Merge(&marks)
		v.rows = append(v.rows, *summary)
		if strategy.Group == ranking.Fails && strategy.WithoutFault() != "" {
			v.known = collect.Union(v.known, summary.Label+" "+strategy.Reason)
		}
	}
	reasons := slices.Concat([]string{strategy.Reason}, strategy.Conditions, []string{strategy.Broken})
	return document.Row{Cells: cells, Only: extent, Strategy: strategy, Why: format.Join("; ", reasons...)}
}

func groupCell(strategy *ranking.Strategy) document.Cell {
	order := float64(slices.Index(ranking.Groups(), strategy.Group))
	cell := document.Cell{Text: string(strategy.Group), Number: &order}
	if strategy.PerProcess {
		cell.Aside = "per process"
	}
	return cell
}

// mostAdmitted is what the worst window admitted.
func mostAdmitted(judged *results.Summary) string {
	if !judged.Counts() || judged.Leak.Trials == 0 {
		return "-"
	}
	admitted := format.Count(judged.Params.Limit + judged.Leak.WorstUnits)
	if judged.Leak.WorstUnits == 0 {
		return "≤ " + admitted // a strategy may have rejected too much
	}
	return admitted
}

func guaranteeCell(summary *results.Summary) document.Cell {
	if !summary.Counts() {
		return document.Cell{Text: "-"}
	}
	cell := document.Cell{Text: figures.Guarantee(summary), Bad: summary.Verdict == results.Broken}
	if clause := figures.Strictest(summary); clause != nil {
		cell.Aside = "at most " + clause.Formula
	}
	return cell
}

// name is short if the table has no other strategy of that name.
func (v *verdicts) name(strategy *ranking.Strategy) string {
	return named(strategy, cmp.Or(v.names[strategy.Label], strategy.Label))
}

// named is a label with what a reader must know of a strategy that has it.
func named(strategy *ranking.Strategy, label string) string {
	if strategy.PerProcess {
		return label + " (per process)"
	}
	if strategy.Summary.Outside && strategy.Group == ranking.Enforces { // no reason says so
		return label + " (measured from outside)"
	}
	return label
}

// notes are at most three: on timings, on correctness, and on options of which the table has none.
func (v *verdicts) notes() []string {
	timings := figures.Disturbance(v.rows)
	if v.marks.Bounds() {
		timings = format.Join("; ", timings,
			"≥ at least: too few samples for the percentile, or requests waited longer and longer")
	}
	out := []string{timings}
	if v.known != nil {
		out = append(out, strings.Join(v.known, "; "))
	}
	if options := v.shortened(); options != nil {
		out = append(out, "with options: "+strings.Join(options, "; "))
	}
	return slices.DeleteFunc(out, func(text string) bool { return text == "" })
}

// fullNotes are those of the full table.
func (v *verdicts) fullNotes() []string {
	out := append([]string{KeptRounds(v.all)}, v.fullMarks.Lines()...)
	if disturbed := figures.Disturbance(v.all); disturbed != "" {
		out = append(out, disturbed)
	}
	return out
}

// shortened are the labels of which the table has only the name.
func (v *verdicts) shortened() (out []string) {
	for label, name := range v.names {
		if label != name {
			out = append(out, format.Plain(label))
		}
	}
	slices.Sort(out)
	return out
}
