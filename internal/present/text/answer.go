package text

import (
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/figures"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// adviceLines say of each setting which strategy to use and why.
func adviceLines(page layout.Page, f results.File, settings []answer.Setting) (out []string) {
	for i := range settings {
		s := &settings[i]
		if len(s.In(answer.Baseline)) == len(s.Strategies) {
			continue // there is nothing to choose from
		}
		if out != nil {
			out = append(out, "")
		}
		for j, sentence := range Advice(f.Kind == results.Simulated, s) {
			if j == 0 && len(settings) > 1 {
				sentence = s.Strategies[0].Summary.Policy + ": " + sentence
			}
			out = append(out, page.Paragraph("", format.Plain(sentence))...)
		}
	}
	return out
}

// verdictLines is the table: a row for each strategy, and a heading above each setting if there
// are several.
func verdictLines(page layout.Page, f results.File, settings []answer.Setting) []string {
	if len(settings) == 0 {
		return nil
	}
	t := newVerdicts(&f, settings)
	var g layout.Grid
	for _, c := range t.columns() {
		g.Columns = append(g.Columns, layout.Column{Title: c})
	}
	g.Columns[0].Left, g.Columns[0].Tone = true, ToneOf
	g.Columns[1].Left, g.Columns[1].Flexible, g.Columns[1].Minimum = true, true, 18
	g.Columns[4].Left, g.Columns[4].Flexible, g.Columns[4].Minimum = true, true, 19
	title := Policy(settings[0].Strategies[0].Summary) + " · " + loadText(f, &settings[0])
	for i := range settings {
		s := &settings[i]
		if len(settings) > 1 {
			title = loadText(f, &settings[0])
			heading := Policy(s.Strategies[0].Summary)
			if load := loadText(f, s); load != title {
				heading += " · " + load
			}
			g.AddHeading(format.Plain(heading), layout.Plain)
		}
		for _, x := range candidates(s) {
			g.Add(t.row(x)...)
		}
	}
	out := append(page.Title(format.Plain(title)), page.Table(&g)...)
	for _, note := range t.notes() {
		out = append(out, noteLines(page, note)...)
	}
	return out
}

// Row is a strategy in the table of [Verdicts].
type Row struct {
	*answer.Strategy
	Cells []string
}

// Verdicts is the table of one setting: what its columns are called, its rows, and at most two
// notes below it.
func Verdicts(f *results.File, s *answer.Setting) (columns []string, rows []Row, notes []string) {
	t := newVerdicts(f, []answer.Setting{*s})
	for _, x := range candidates(s) {
		rows = append(rows, Row{x, t.row(x)})
	}
	columns = t.columns()
	for i := range columns {
		columns[i] = strings.ReplaceAll(columns[i], "\n", " ")
	}
	return columns, rows, t.notes()
}

// candidates are the strategies to choose from, or the baselines if nothing else ran.
func candidates(s *answer.Setting) (out []*answer.Strategy) {
	baselines := len(s.In(answer.Baseline))
	for i := range s.Strategies {
		if x := &s.Strategies[i]; x.Group != answer.Baseline || baselines == len(s.Strategies) {
			out = append(out, x)
		}
	}
	return out
}

// loadText is what the strategies of one setting have in common, except the policy.
func loadText(f results.File, s *answer.Setting) string {
	x := s.Strategies[0].Summary
	p := x.Params
	load := format.Plural(int64(p.Workers), "worker", "workers")
	if r := &x.AtRate().Params; r.Loop == results.OpenLoop && r.RatePerS > 0 {
		load = format.Digits(r.RatePerS) + " requests/s"
		if r.RateFrom != "" {
			load += " (" + r.RateFrom + ")"
		}
	}
	return format.Join(" · ", x.Workload, load, format.Plural(int64(p.Instances), "instance", "instances"), rounds(f), storesText(f))
}

// verdicts makes the rows of one table, and the notes that they need.
type verdicts struct {
	div       float64 // nanoseconds of the unit of p99
	p99Title  string
	simulated bool
	waited    []string // whose p99 may hold waiting for a core
	known     []string // what searches found of those that passed
	n, none   int      // rows, and those without a p99
}

// newVerdicts takes the unit in which the smallest p99 is not below 1.
func newVerdicts(f *results.File, settings []answer.Setting) *verdicts {
	least, interval := 0.0, false
	for i := range settings {
		for _, x := range candidates(&settings[i]) {
			p := x.Summary.Latency().P99
			if p.Shown() && (least == 0 || p.Value < least) {
				least = p.Value
			}
			interval = interval || p.Coverage > 0
		}
	}
	t := &verdicts{simulated: f.Kind == results.Simulated, p99Title: "p99", div: 1}
	if t.simulated {
		t.p99Title = "modelled p99"
	}
	if least > 0 {
		div, unit := format.TimeUnit(least)
		t.div, t.p99Title = div, t.p99Title+", "+unit
	}
	if interval {
		t.p99Title += "\n[95 % interval]"
	}
	return t
}

func (t *verdicts) columns() []string {
	return []string{"verdict", "strategy", "most admitted in a window", "windows over the limit", t.p99Title, "commands per decision"}
}

func (t *verdicts) row(x *answer.Strategy) []string {
	t.n++
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
		t.known = append(t.known, x.Label+": "+known)
	}
	var notes figures.Notes
	return []string{x.Group.Verdict(), format.Plain(name(x)), admitted, over, t.p99(x),
		format.TrimZeros(figures.Of("all-commands").Text(x.Summary, &notes))}
}

func (t *verdicts) p99(x *answer.Strategy) string {
	s := x.Summary
	p := s.Latency().P99
	switch {
	case s.Overloaded():
		return "overloaded"
	case !p.Shown():
		t.none++
		return "-"
	}
	text := format.Digits(p.Value / t.div)
	if p.Coverage > 0 {
		text += " [" + format.Digits(p.Lo/t.div) + "–" + format.Digits(p.Hi/t.div) + "]"
	}
	if 2*p.Waited > p.Rounds {
		t.waited = append(t.waited, x.Label)
	}
	return text
}

// notes are at most two: on timings, and on correctness.
func (t *verdicts) notes() []string {
	var timings []string
	switch {
	case len(t.waited) > 0 && len(t.waited)+t.none == t.n:
		timings = append(timings, "every p99 may include waiting for a core")
	case len(t.waited) > 0:
		timings = append(timings, "the p99 of "+listed(t.waited)+" may include waiting for a core")
	}
	if t.none > 0 && !t.simulated {
		timings = append(timings, "a p99 is not shown if it is not measurable here or if there are too few samples")
	}
	out := []string{strings.Join(timings, "; ")}
	if t.known != nil {
		out = append(out, "searches found, without any fault: "+strings.Join(t.known, "; "))
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// untestedLines says what the settings leave open, with one command that tests some of it.
func untestedLines(page layout.Page, settings []answer.Setting) []string {
	var what []string
	command := ""
	for _, s := range slices.Backward(settings) { // the command is one of the first setting
		for _, u := range s.Untested {
			if !slices.Contains(what, u.What) {
				what = append(what, u.What)
			}
			switch {
			case u.Command != "":
				command = u.Command
			case u.Add != "" && command == "":
				command = "this command again, with " + u.Add
			}
		}
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
