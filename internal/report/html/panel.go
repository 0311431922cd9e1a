package html

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/results"
)

// panelView is all that is known of one strategy.
type panelView struct {
	ID, Label, Form string
	About           *About
	Runs            []*runView
	Explored        []*exploredView
	Series          []drawingView
}

// Groups are those that the strategy belongs to in some setting, the best first.
func (v *panelView) Groups() (out []groupView) {
	for _, view := range v.Runs {
		out = collect.Union(out, view.Group)
	}
	slices.SortFunc(out, func(a, b groupView) int { return a.Order - b.Order })
	return out
}

// runView is a strategy in one setting.
type runView struct {
	Record, Setting string // titles
	Link            string
	Group           groupView
	Reason          string
	Tables          []*document.Table
	Findings        []text.Finding
}

// panels are those of a page, by the strategy's label.
type panels struct {
	about func(string) (About, bool)
	by    map[string]*panelView
	ids   map[string]bool
	// charts are where drawings of findings belong.
	charts map[*results.Finding]*scheduleView
}

// of is the panel of a label. The public name, which may be empty, is that of the
// strategy.
func (p *panels) of(label, strategy string) *panelView {
	if view := p.by[label]; view != nil {
		return view
	}
	v := &panelView{ID: p.id(label), Label: label}
	if strategy == "" {
		strategy, _, _ = strings.Cut(label, ":")
	}
	if p.about != nil {
		if about, ok := p.about(strategy); ok {
			v.About = &about
		}
	}
	p.by[label] = v
	return v
}

// id is a name for links that no other panel has.
func (p *panels) id(label string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, label)
	id := "s-" + slug
	for n := 2; p.ids[id]; n++ {
		id = fmt.Sprintf("s-%s-%d", slug, n)
	}
	p.ids[id] = true
	return id
}

// sorted are all panels by label.
func (p *panels) sorted() []*panelView {
	return slices.SortedFunc(maps.Values(p.by), func(a, b *panelView) int { return strings.Compare(a.Label, b.Label) })
}

// run adds what a strategy did in a setting.
func (p *panels) run(view *recordView, s *settingView, strategy *ranking.Strategy, summary *results.Summary,
	file *results.File) {
	panel := p.of(strategy.Label, summary.Strategy)
	panel.Form = cmp.Or(panel.Form, summary.Form)
	r := &runView{Record: view.Name, Setting: s.Title, Link: s.ID, Group: groupOf(strategy.Group),
		Reason: strategy.Reason}
	for _, t := range []*document.Table{
		decisionsTable(summary),
		rowsTable("Declared guarantee, in the worst window of any subject and round", text.Clauses(clauses), summary),
		latencyTable(summary), loadTable(summary, s.simulated), rowsTable("Figures of its own", text.Own, summary),
		costTable(summary),
		figureRows("Processor time per decision, and keys", summary, figures.Table("process")...),
		rowsTable("Kept in stores, in the round that kept most", text.Stored, summary), settlementTable(summary),
		optionsTable(file, summary),
	} {
		if t != nil {
			r.Tables = append(r.Tables, t)
		}
	}
	add := func(loop string, a *results.Summary) {
		for _, reason := range a.Audit.Reasons {
			r.Findings = append(r.Findings, text.Finding{Reason: reason, Of: format.Join(", ", loop, rounds(a, reason.Code))})
		}
	}
	if summary.Paced == nil {
		add("", summary)
	} else {
		add("closed loop", summary)
		add("open loop", summary.Paced)
	}
	panel.Runs = append(panel.Runs, r)
}

// rounds says in how many rounds a finding was made.
func rounds(summary *results.Summary, code string) string {
	return fmt.Sprintf("%d of %s", summary.Occurrences[code], format.Plural(int64(summary.Rounds), "round", "rounds"))
}

func decisionsTable(summary *results.Summary) *document.Table {
	t := newTable("Decisions; leak, worst window and drift in "+summary.Params.Unit, "figure", "value")
	t.Add("rounds", fmt.Sprint(summary.Rounds))
	if summary.Paced != nil {
		t.Add("rounds kept for latency", text.Kept(summary.Paced))
		t.Add("rounds kept for decisions per second", text.Kept(summary))
	} else {
		t.Add("rounds kept for timings", text.Kept(summary))
	}
	if summary.Invalid > 0 {
		t.Add("invalid rounds", fmt.Sprint(summary.Invalid))
	}
	addFigures(t, summary, "requests", "admitted", "rejected")
	if summary.Errors > 0 {
		t.Add("errors", format.Join(": ", format.Count(summary.Errors), strings.Join(figures.Errors(summary), ", ")))
		t.Add("first error", summary.FirstError)
	}
	addFigures(t, summary, figures.Table("decisions")...)
	return t
}

// clauses are what is declared, and what the design record promises.
func clauses(summary *results.Summary) []results.Clause {
	return slices.Concat(summary.Guarantee, summary.Record)
}

func latencyTable(summary *results.Summary) *document.Table {
	var notes figures.Notes
	t := latencyColumns("Latency", "time")
	add := func(name string, percentiles *results.Percentiles) { addPercentiles(t, &notes, name, percentiles) }
	r := summary.AtRate()
	if r.Response != nil {
		add("response", r.Response)
	}
	if summary.Paced != nil {
		add("service at the common rate", &r.Service)
		add("saturated service", &summary.Service)
	} else {
		add("service", &summary.Service)
	}
	if r.Reference != nil {
		add("bare client", r.Reference)
	}
	t.Notes = notes.Lines()
	return t
}

func loadTable(summary *results.Summary, simulated bool) *document.Table {
	t := newTable("Throughput and scheduling delay", "figure", "value")
	if !simulated && summary.Throughput.Rounds > 0 {
		t.Add("decisions per second", interval(summary.Throughput, func(value float64) string {
			return format.Count(int64(value + 0.5))
		}))
		if summary.Ratio.Rounds > 0 {
			t.Add("ratio to a bare client's INCR loop", interval(summary.Ratio, format.Digits))
		}
	}
	addFigures(t, summary, slices.Concat(figures.Table("speed"), figures.Table("delay"))...)
	return filled(t)
}

// settlementTable is what became of admitted requests.
func settlementTable(summary *results.Summary) *document.Table {
	if summary.Settled == nil {
		return nil
	}
	return figureRows("Settlement of admitted requests", summary, figures.Table("settlement")...)
}

// interval is a figure over rounds.
func interval(figure results.Figure, show func(float64) string) string {
	switch {
	case figure.Rounds < 2 || figure.Lo == figure.Hi:
		return show(figure.Value)
	case figure.Coverage == 0:
		return fmt.Sprintf("%s (rounds from %s to %s)", show(figure.Value), show(figure.Lo), show(figure.Hi))
	}
	return fmt.Sprintf("%s [%s, %s]", show(figure.Value), show(figure.Lo), show(figure.Hi))
}

func optionsTable(file *results.File, summary *results.Summary) *document.Table {
	t := newTable("Options", "option", "value")
	i := slices.IndexFunc(file.Runs, func(run results.Run) bool {
		return run.Params.Label == summary.Params.Label && run.Strategy == summary.Strategy
	})
	if i < 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(file.Runs[i].Options)) {
		t.Add(name, file.Runs[i].Options[name])
	}
	return filled(t)
}

// costTable is what a decision costs, as a mean of the run and as a probe counted it.
func costTable(summary *results.Summary) *document.Table {
	t := newTable("Cost per decision", "of")
	columns := document.Figures(figures.Table("cost")...)
	t.Place(columns)
	notes := figures.Notes{Exact: true}
	add := func(name string, cost *results.ProbeCost) {
		if cost == nil {
			return
		}
		part := &results.Summary{Cost: results.Cost{ProbeCost: *cost}}
		row := t.Add(name)
		for _, cell := range document.Cells(part, columns, &notes) {
			cell.Text = cmp.Or(cell.Text, "-")
			row.Cells = append(row.Cells, cell)
		}
	}
	add("mean of the run", &summary.Cost.ProbeCost)
	if probe := summary.Cost.Probe; probe != nil {
		add("exact: a subject's first", &probe.First)
		add("exact: admitted", probe.Admitted)
		add("exact: rejected", probe.Rejected)
	}
	t.Notes = notes.Lines()
	return t
}

// rowsTable is a table that the terminal has, too, of one strategy.
func rowsTable(caption string, rows text.Rows, summary *results.Summary) *document.Table {
	t := &document.Table{Title: caption, Columns: slices.Clone(rows.Columns)}
	for _, cells := range rows.Of(summary) {
		t.Add(cells...)
	}
	t.Compact()
	return filled(t)
}

// figureRows is a table with a row for each figure that the strategy has.
func figureRows(caption string, summary *results.Summary, keys ...string) *document.Table {
	t := newTable(caption, "figure", "#value")
	addFigures(t, summary, keys...)
	return filled(t)
}

// addFigures adds a row for each figure that the strategy has.
func addFigures(t *document.Table, summary *results.Summary, keys ...string) {
	var notes figures.Notes
	for _, k := range keys {
		figure := figures.Of(k)
		if text := figure.Text(summary, &notes); text != "" {
			t.Add(figure.Label(), strings.ReplaceAll(text, "\n", "; "))
		}
	}
	t.Notes = collect.Union(t.Notes, notes.Lines()...)
}
