package text

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Decision is what somebody who must choose reads first, of runs and sweeps alike.
type Decision struct {
	// Advice is the answer in sentences: what to use and why, and what it was chosen over. An empty one
	// stands between settings.
	Advice []string
	// Title says what all rows have in common. Columns are at most seven, and notes at most three.
	Title   string
	Columns []layout.Column
	Rows    []Row
	Notes   []string
	// Untested is what is left open.
	Untested []ranking.Untested
	// Setting is what all points of a sweep have in common.
	Setting []Entry
}

// Row of the table of a [Decision].
type Row struct {
	// Heading says what the rows below it have in common; a heading has no cells.
	Heading string
	*ranking.Strategy
	Cells []string
}

// Why is the reason for the verdict, with the conditions of the promise and what was broken.
func (r Row) Why() string {
	return format.Join("; ", slices.Concat([]string{r.Reason}, r.Conditions, []string{r.Broken})...)
}

// Decide says of settings which strategy to use, with a row for each strategy, and a heading above
// each setting if there are several.
func Decide(file *results.File, settings ...ranking.Setting) (decision Decision) {
	if len(settings) == 0 {
		decision.Advice = []string{"No strategy was run."}
		if file.Considered != nil && !file.Interrupted {
			decision.Advice = []string{"No strategy is left to measure."}
		}
		return decision
	}
	verdicts := newVerdicts(file, settings)
	decision.Columns = verdicts.columns()
	decision.Title = Policy(settings[0].Strategies[0].Summary) + " · " + loadText(file, &settings[0])
	if len(settings) > 1 {
		decision.Title = loadText(file, &settings[0])
	}
	for i := range settings {
		setting := &settings[i]
		if len(settings) > 1 {
			heading := Policy(setting.Strategies[0].Summary)
			if load := loadText(file, setting); load != decision.Title {
				heading += " · " + load
			}
			decision.Rows = append(decision.Rows, Row{Heading: heading})
		}
		for _, strategy := range candidates(setting) {
			decision.Rows = append(decision.Rows, Row{Strategy: strategy, Cells: verdicts.row(strategy)})
		}
		if setting.HasCandidates() {
			decision.advise(len(settings) > 1, setting, file.Kind == results.Simulated)
		}
		decision.Untested = slices.Concat(setting.Untested, decision.Untested) // the command that is shown is the last one
	}
	decision.Notes = verdicts.notes()
	return decision
}

func (d *Decision) advise(several bool, setting *ranking.Setting, simulated bool) {
	sentences := Advice(simulated, setting)
	if several {
		sentences[0] = setting.Strategies[0].Summary.Policy + ": " + sentences[0]
	}
	if d.Advice != nil {
		d.Advice = append(d.Advice, "")
	}
	d.Advice = append(d.Advice, sentences...)
}

func (d *Decision) adviceLines(page layout.Page) (out []string) {
	for _, sentence := range d.Advice {
		if sentence == "" {
			out = append(out, "")
			continue
		}
		out = append(out, page.Paragraph("", format.Plain(sentence))...)
	}
	return out
}

func (d *Decision) tableLines(page layout.Page) []string {
	if len(d.Rows) == 0 {
		return nil
	}
	grid := layout.Grid{Columns: d.Columns}
	for _, row := range d.Rows {
		if row.Heading != "" {
			grid.AddHeading(format.Plain(row.Heading), layout.Plain)
			continue
		}
		grid.Add(row.Cells...)
	}
	out := append(page.Title(format.Plain(d.Title)), page.Table(&grid)...)
	for _, note := range d.Notes {
		out = append(out, noteLines(page, note)...)
	}
	return out
}

// candidates are the strategies to choose from, or the baselines if nothing else ran.
func candidates(setting *ranking.Setting) (out []*ranking.Strategy) {
	baselines := !setting.HasCandidates()
	for i := range setting.Strategies {
		if strategy := &setting.Strategies[i]; baselines || strategy.Group != ranking.Baseline {
			out = append(out, strategy)
		}
	}
	return out
}

// loadText is what the strategies of one setting have in common, except the policy.
func loadText(file *results.File, setting *ranking.Setting) string {
	summary := setting.Strategies[0].Summary
	params := &summary.Params
	load := fixed(params, "workers", format.Plural(int64(params.Workers), "worker", "workers"))
	if r := &summary.AtRate().Params; r.Loop == results.OpenLoop && r.RatePerS > 0 {
		load = fixed(params, "rate", format.Digits(r.RatePerS)+" requests/s") + surrounded(" (", r.RateFrom, ")")
	}
	return format.Join(" · ", summary.Workload, load,
		fixed(params, "instances", format.Plural(int64(params.Instances), "instance", "instances")),
		rounds(file), file.StoresText())
}

// fixed is the text of a parameter, unless a sweep varies it.
func fixed(params *results.Params, name, text string) string {
	if _, varies := params.Point[name]; varies {
		return ""
	}
	return text
}

// verdicts makes the rows of one table, and the notes that they need.
type verdicts struct {
	p50, p99   timingColumn
	throughput timingColumn
	names      map[string]string // short, by label
	simulated  bool
	known      []string // what searches found of those that passed

	rows   []results.Summary
	bounds bool // a latency is only a lower bound
}

// The columns of the table. Those of a sweep have its value in place of the strategy.
const (
	columnStrategy = iota
	columnVerdict
	columnAdmitted
	columnP50
	columnP99
	columnThroughput
	columnCommands
)

// newVerdicts takes for each latency the unit in which the smallest is not below 1.
func newVerdicts(file *results.File, settings []ranking.Setting) *verdicts {
	t := &verdicts{simulated: file.Kind == results.Simulated}
	var all []*ranking.Strategy
	for i := range settings {
		all = append(all, candidates(&settings[i])...)
	}
	t.p50 = newLatencyColumn("p50", t.simulated, all)
	t.p99 = newLatencyColumn("p99", t.simulated, all)
	t.throughput = newThroughputColumn(all)
	t.names = shortNames(all)
	known := func(strategy *ranking.Strategy) bool {
		return strategy.Summary.Latency().P50.Coverage > 0 || strategy.Summary.Throughput.Coverage > 0
	}
	if slices.ContainsFunc(all, known) {
		t.p50.over = withIntervals
		t.p99.over = withIntervals
		t.throughput.over = withIntervals
	}
	return t
}

// timingColumn shows a timing of all strategies in one unit.
type timingColumn struct {
	figure *figures.Figure
	title  string
	over   string
	unit   float64
}

// thousands is the unit of throughputs none of which is lower.
const thousands = 1000

func newThroughputColumn(all []*ranking.Strategy) timingColumn {
	column := timingColumn{figure: figures.Of("throughput"), title: "decisions/s", unit: 1}
	slow := func(strategy *ranking.Strategy) bool { return strategy.Summary.Throughput.Value < thousands }
	if !slices.ContainsFunc(all, slow) {
		column.title = "decisions/s,\nthousands"
		column.unit = thousands
	}
	return column
}

func newLatencyColumn(key string, modelled bool, all []*ranking.Strategy) timingColumn {
	column := timingColumn{figure: figures.Of(key)}
	var values []float64
	for _, strategy := range all {
		percentile := column.figure.Percentile(strategy.Summary)
		if percentile.Rounds > 0 {
			values = append(values, percentile.Value)
		}
	}
	column.title, column.unit = latencyTitle(key, modelled, values)
	return column
}

// latencyTitle heads a column of latencies in nanoseconds, in the unit in which the smallest that is not 0 is not below
// 1.
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

// withIntervals heads the timings if one of them has an interval.
const withIntervals = "with 95 % intervals"

func (t *verdicts) columns() []layout.Column {
	return []layout.Column{
		columnStrategy:   {Title: "strategy", Left: true, Flexible: true, Minimum: 18},
		columnVerdict:    {Title: "verdict", Left: true, Tone: ToneOf},
		columnAdmitted:   {Title: "most admitted\nin a window"},
		columnP50:        t.p50.column(),
		columnP99:        t.p99.column(),
		columnThroughput: t.throughput.column(),
		columnCommands:   {Title: "commands\nper decision"},
	}
}

func (c *timingColumn) column() layout.Column {
	return layout.Column{Title: c.title, Over: c.over, Left: true, Flexible: true, Minimum: 11, Optional: true}
}

func (t *verdicts) row(strategy *ranking.Strategy) []string {
	leak := &strategy.Judged.Leak
	admitted := "-"
	if strategy.Judged.Counts() && leak.Trials > 0 {
		admitted = format.Count(strategy.Judged.Params.Limit + leak.WorstUnits)
		if leak.WorstUnits == 0 {
			admitted = "≤ " + admitted // a strategy may have rejected too much
		}
	}
	if known := strategy.WithoutFault(); known != "" {
		t.known = collect.Union(t.known, strategy.Summary.Label+": "+known)
	}
	t.rows = append(t.rows, *strategy.Summary)
	var notes figures.Notes
	return []string{
		columnStrategy:   format.Plain(t.name(strategy)),
		columnVerdict:    strategy.Group.Verdict(),
		columnAdmitted:   admitted,
		columnP50:        t.timing(t.p50, strategy.Summary),
		columnP99:        t.timing(t.p99, strategy.Summary),
		columnThroughput: t.perSecond(strategy.Summary),
		columnCommands:   format.TrimZeros(figures.Of("all-commands").Text(strategy.Summary, &notes)),
	}
}

func (t *verdicts) timing(column timingColumn, summary *results.Summary) string {
	shown := column.figure.TimingIn(summary, figures.Scale{Length: column.unit})
	t.bounds = t.bounds || shown.Bound
	return shown.String()
}

// perSecond is the throughput; empty in a simulation, which has none.
func (t *verdicts) perSecond(summary *results.Summary) string {
	if t.simulated {
		return ""
	}
	return t.timing(t.throughput, summary)
}

// name is short if the table has no other strategy of that name.
func (t *verdicts) name(strategy *ranking.Strategy) string {
	return named(strategy, cmp.Or(t.names[strategy.Label], strategy.Label))
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
func (t *verdicts) notes() []string {
	timings := figures.Disturbance(t.rows)
	if t.bounds {
		timings = format.Join("; ", timings,
			"≥ at least: too few samples for the percentile, or requests waited longer and longer")
	}
	out := []string{timings}
	if t.known != nil {
		out = append(out, "searches found, without any fault: "+strings.Join(t.known, "; "))
	}
	if options := t.shortened(); options != nil {
		out = append(out, "with options: "+strings.Join(options, "; "))
	}
	return slices.DeleteFunc(out, func(text string) bool { return text == "" })
}

// shortened are the labels of which the table has only the name.
func (t *verdicts) shortened() (out []string) {
	for label, name := range t.names {
		if label != name {
			out = append(out, format.Plain(label))
		}
	}
	slices.Sort(out)
	return out
}

// untestedLines says what is left open, with one command that tests some of it.
func (d *Decision) untestedLines(page layout.Page) []string {
	var what []string
	command := ""
	add := ""
	for _, untested := range d.Untested {
		what = collect.Union(what, untested.What)
		command = cmp.Or(untested.Command, command)
		add = cmp.Or(untested.Add, add)
	}
	if command == "" && add != "" {
		command = "this command again, with " + add
	}
	if what == nil {
		return nil
	}
	text := "Not tested: " + strings.Join(what, "; ") + "."
	if command == "" {
		return page.Paragraph("", format.Plain(text))
	}
	return append(page.Paragraph("", format.Plain(text+" To test more:")), "  "+format.Plain(command))
}
