package text

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/figures"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/groups"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Decision is what somebody who must choose reads first, of runs and sweeps alike.
type Decision struct {
	// Advice is the answer in sentences: what to use and why, and what it was chosen over. An empty one
	// stands between settings.
	Advice []string
	// Title says what all rows have in common. Columns are at most six, and notes at most two.
	Title   string
	Columns []layout.Column
	Rows    []Row
	Notes   []string
	// Untested is what is left open.
	Untested []answer.Untested
	// Setting is what all points of a sweep have in common.
	Setting []Entry
}

// Row of the table of a [Decision].
type Row struct {
	// Heading says what the rows below it have in common; a heading has no cells.
	Heading string
	*answer.Strategy
	Cells []string
}

// Why is the reason for the verdict, with the conditions of the promise and what was broken.
func (r Row) Why() string {
	return format.Join("; ", slices.Concat([]string{r.Reason}, r.Conditions, []string{r.Broken})...)
}

// Decide says of settings which strategy to use, with a row for each strategy, and a heading above
// each setting if there are several.
func Decide(f *results.File, settings ...answer.Setting) (d Decision) {
	if len(settings) == 0 {
		d.Advice = []string{"No strategy was run."}
		if f.Considered != nil && !f.Interrupted {
			d.Advice = []string{"No strategy is left to measure."}
		}
		return d
	}
	t := newVerdicts(f, settings)
	d.Columns = t.columns()
	d.Title = Policy(settings[0].Strategies[0].Summary) + " · " + loadText(f, &settings[0])
	if len(settings) > 1 {
		d.Title = loadText(f, &settings[0])
	}
	for i := range settings {
		s := &settings[i]
		if len(settings) > 1 {
			heading := Policy(s.Strategies[0].Summary)
			if load := loadText(f, s); load != d.Title {
				heading += " · " + load
			}
			d.Rows = append(d.Rows, Row{Heading: heading})
		}
		for _, x := range candidates(s) {
			d.Rows = append(d.Rows, Row{Strategy: x, Cells: t.row(x)})
		}
		if s.HasCandidates() {
			d.advise(len(settings) > 1, s, f.Kind == results.Simulated)
		}
		d.Untested = slices.Concat(s.Untested, d.Untested) // the command that is shown is the last one
	}
	d.Notes = t.notes()
	return d
}

func (d *Decision) advise(several bool, s *answer.Setting, simulated bool) {
	sentences := Advice(simulated, s)
	if several {
		sentences[0] = s.Strategies[0].Summary.Policy + ": " + sentences[0]
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
	g := layout.Grid{Columns: d.Columns}
	for _, r := range d.Rows {
		if r.Heading != "" {
			g.AddHeading(format.Plain(r.Heading), layout.Plain)
			continue
		}
		g.Add(r.Cells...)
	}
	out := append(page.Title(format.Plain(d.Title)), page.Table(&g)...)
	for _, note := range d.Notes {
		out = append(out, noteLines(page, note)...)
	}
	return out
}

// candidates are the strategies to choose from, or the baselines if nothing else ran.
func candidates(s *answer.Setting) (out []*answer.Strategy) {
	baselines := !s.HasCandidates()
	for i := range s.Strategies {
		if x := &s.Strategies[i]; baselines || x.Group != answer.Baseline {
			out = append(out, x)
		}
	}
	return out
}

// loadText is what the strategies of one setting have in common, except the policy.
func loadText(f *results.File, s *answer.Setting) string {
	x := s.Strategies[0].Summary
	p := &x.Params
	load := fixed(p, "workers", format.Plural(int64(p.Workers), "worker", "workers"))
	if r := &x.AtRate().Params; r.Loop == results.OpenLoop && r.RatePerS > 0 {
		load = fixed(p, "rate", format.Digits(r.RatePerS)+" requests/s") + surrounded(" (", r.RateFrom, ")")
	}
	return format.Join(" · ", x.Workload, load, fixed(p, "instances", format.Plural(int64(p.Instances), "instance", "instances")),
		rounds(f), f.StoresText())
}

// fixed is the text of a parameter, unless a sweep varies it.
func fixed(p *results.Params, name, text string) string {
	if _, varies := p.Point[name]; varies {
		return ""
	}
	return text
}

// verdicts makes the rows of one table, and the notes that they need.
type verdicts struct {
	div       float64 // nanoseconds of the unit of p99
	p99Title  string
	simulated bool
	known     []string // what searches found of those that passed

	rows   []results.Summary
	bounds bool // a p99 is only a lower bound
}

// newVerdicts takes the unit in which the smallest p99 is not below 1.
func newVerdicts(f *results.File, settings []answer.Setting) *verdicts {
	var all []float64
	interval := false
	for i := range settings {
		for _, x := range candidates(&settings[i]) {
			p := x.Summary.Latency().P99
			if p.Rounds > 0 {
				all = append(all, p.Value)
			}
			interval = interval || p.Coverage > 0
		}
	}
	t := &verdicts{simulated: f.Kind == results.Simulated}
	t.p99Title, t.div = p99Title(t.simulated, all)
	if interval {
		t.p99Title += "\n[95 % interval]"
	}
	return t
}

// p99Title heads a column of latencies in nanoseconds, in the unit in which the smallest that is not 0 is not below 1.
func p99Title(modelled bool, all []float64) (title string, div float64) {
	if title = "p99"; modelled {
		title = "modelled p99"
	}
	all = slices.DeleteFunc(all, func(ns float64) bool { return ns == 0 })
	if len(all) == 0 {
		return title, 1
	}
	div, unit := format.TimeUnit(slices.Min(all))
	return title + ", " + unit, div
}

func (t *verdicts) columns() []layout.Column {
	return []layout.Column{
		{Title: "verdict", Left: true, Tone: ToneOf}, {Title: "strategy", Left: true, Flexible: true, Minimum: 18},
		{Title: "most admitted in a window"}, {Title: "windows over the limit"},
		{Title: t.p99Title, Left: true, Flexible: true, Minimum: 19}, {Title: "commands per decision"},
	}
}

func (t *verdicts) row(x *answer.Strategy) []string {
	leak := &x.Judged.Leak
	admitted, over := "-", "-"
	if x.Judged.Counts() && leak.Trials > 0 {
		admitted = format.Count(x.Judged.Params.Limit + leak.WorstUnits)
		if leak.WorstUnits == 0 {
			admitted = "≤ " + admitted // a strategy may have rejected too much
		}
		over = format.Count(leak.LeakedTrials) + " of " + format.Count(leak.Trials)
	}
	if known := x.WithoutFault(); known != "" {
		t.known = groups.Union(t.known, x.Summary.Label+": "+known)
	}
	var notes figures.Notes
	return []string{x.Group.Verdict(), format.Plain(name(x)), admitted, over, t.p99(x),
		format.TrimZeros(figures.Of("all-commands").Text(x.Summary, &notes))}
}

func (t *verdicts) p99(x *answer.Strategy) string {
	shown := figures.Of("p99").TimingIn(x.Summary, figures.Scale{Length: t.div})
	t.bounds = t.bounds || strings.Contains(shown.Value, "≥")
	t.rows = append(t.rows, *x.Summary)
	return shown.String()
}

// notes are at most two: on timings, and on correctness.
func (t *verdicts) notes() []string {
	timings := figures.Disturbance(t.rows)
	if t.bounds {
		timings = format.Join("; ", timings, "≥ at least: too few samples for a p99, or requests waited longer and longer")
	}
	out := []string{timings}
	if t.known != nil {
		out = append(out, "searches found, without any fault: "+strings.Join(t.known, "; "))
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// untestedLines says what is left open, with one command that tests some of it.
func (d *Decision) untestedLines(page layout.Page) []string {
	var what []string
	command, add := "", ""
	for _, u := range d.Untested {
		what = groups.Union(what, u.What)
		command, add = cmp.Or(u.Command, command), cmp.Or(u.Add, add)
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

func name(s *answer.Strategy) string {
	if s.PerProcess {
		return s.Label + " (per process)"
	}
	if s.Summary.Outside && s.Group == answer.Enforces { // no reason says so
		return s.Label + " (measured from outside)"
	}
	return s.Label
}
