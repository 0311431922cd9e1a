package html

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
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
	for _, r := range v.Runs {
		out = collect.Union(out, r.Group)
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
	Tables          []*table
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
	if v := p.by[label]; v != nil {
		return v
	}
	v := &panelView{ID: p.id(label), Label: label}
	if strategy == "" {
		strategy, _, _ = strings.Cut(label, ":")
	}
	if p.about != nil {
		if a, ok := p.about(strategy); ok {
			v.About = &a
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
func (p *panels) run(v *recordView, s *settingView, row *decisionRow, x *results.Summary, f *results.File) {
	panel := p.of(row.Label, x.Strategy)
	panel.Form = cmp.Or(panel.Form, x.Form)
	r := &runView{Record: v.Name, Setting: s.Title, Link: s.ID, Group: groupOf(row.Group), Reason: row.Reason}
	for _, t := range []*table{
		decisionsTable(x),
		rowsTable("Declared guarantee, in the worst window of any subject and round", text.Clauses(clauses), x),
		latencyTable(x), loadTable(x, s.simulated), rowsTable("Figures of its own", text.Own, x), costTable(x),
		figureRows("Processor time per decision, and keys", x, figures.Table("process")...),
		rowsTable("Kept in stores, in the round that kept most", text.Stored, x), settlementTable(x), optionsTable(f, x),
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
	if x.Paced == nil {
		add("", x)
	} else {
		add("closed loop", x)
		add("open loop", x.Paced)
	}
	panel.Runs = append(panel.Runs, r)
}

// rounds says in how many rounds a finding was made.
func rounds(s *results.Summary, code string) string {
	return fmt.Sprintf("%d of %s", s.Occurrences[code], format.Plural(int64(s.Rounds), "round", "rounds"))
}

func decisionsTable(s *results.Summary) *table {
	t := newTable("Decisions; leak, worst window and drift in "+s.Params.Unit, "figure", "value")
	t.Add("rounds", fmt.Sprint(s.Rounds))
	if s.Paced != nil {
		t.Add("rounds kept for latency", text.Kept(s.Paced))
		t.Add("rounds kept for decisions per second", text.Kept(s))
	} else {
		t.Add("rounds kept for timings", text.Kept(s))
	}
	if s.Invalid > 0 {
		t.Add("invalid rounds", fmt.Sprint(s.Invalid))
	}
	t.rows(s, "requests", "admitted", "rejected")
	if s.Errors > 0 {
		t.Add("errors", format.Join(": ", format.Count(s.Errors), strings.Join(figures.Errors(s), ", ")))
		t.Add("first error", s.FirstError)
	}
	t.rows(s, figures.Table("decisions")...)
	return t
}

// clauses are what is declared, and what the design record promises.
func clauses(s *results.Summary) []results.Clause { return slices.Concat(s.Guarantee, s.Record) }

func latencyTable(s *results.Summary) *table {
	t := latencyColumns("Latency", "time")
	r := s.AtRate()
	if r.Response != nil {
		t.percentiles("response", r.Response)
	}
	if s.Paced != nil {
		t.percentiles("service at the common rate", &r.Service)
		t.percentiles("saturated service", &s.Service)
	} else {
		t.percentiles("service", &s.Service)
	}
	if r.Reference != nil {
		t.percentiles("bare client", r.Reference)
	}
	return t
}

func loadTable(s *results.Summary, simulated bool) *table {
	t := newTable("Throughput and scheduling delay", "figure", "value")
	if !simulated && s.Throughput.Rounds > 0 {
		t.Add("decisions per second", interval(s.Throughput, func(x float64) string { return format.Count(int64(x + 0.5)) }))
		if s.Ratio.Rounds > 0 {
			t.Add("ratio to a bare client's INCR loop", interval(s.Ratio, format.Digits))
		}
	}
	t.rows(s, slices.Concat(figures.Table("speed"), figures.Table("delay"))...)
	return t.orNil()
}

// settlementTable is what became of admitted requests.
func settlementTable(s *results.Summary) *table {
	if s.Settled == nil {
		return nil
	}
	return figureRows("Settlement of admitted requests", s, figures.Table("settlement")...)
}

// interval is a figure over rounds.
func interval(f results.Figure, show func(float64) string) string {
	switch {
	case f.Rounds < 2 || f.Lo == f.Hi:
		return show(f.Value)
	case f.Coverage == 0:
		return fmt.Sprintf("%s (rounds from %s to %s)", show(f.Value), show(f.Lo), show(f.Hi))
	}
	return fmt.Sprintf("%s [%s, %s]", show(f.Value), show(f.Lo), show(f.Hi))
}

func optionsTable(f *results.File, s *results.Summary) *table {
	t := newTable("Options", "option", "value")
	i := slices.IndexFunc(f.Runs, func(r results.Run) bool { return r.Params.Label == s.Params.Label && r.Strategy == s.Strategy })
	if i < 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.Runs[i].Options)) {
		t.Add(name, f.Runs[i].Options[name])
	}
	return t.orNil()
}

// costTable is what a decision costs, as a mean of the run and as a probe counted it.
func costTable(s *results.Summary) *table {
	t := newTable("Cost per decision", "of")
	keys := figures.Table("cost")
	t.notes.Exact = true
	for _, k := range keys {
		t.Columns = append(t.Columns, layout.Column{Title: figures.Of(k).Title()})
	}
	add := func(name string, c *results.ProbeCost) {
		if c == nil {
			return
		}
		part := &results.Summary{Cost: results.Cost{ProbeCost: *c}}
		cells := []string{name}
		for _, k := range keys {
			cells = append(cells, cmp.Or(figures.Of(k).Text(part, &t.notes), "-"))
		}
		t.Add(cells...)
	}
	add("mean of the run", &s.Cost.ProbeCost)
	if p := s.Cost.Probe; p != nil {
		add("exact: a subject's first", &p.First)
		add("exact: admitted", p.Admitted)
		add("exact: rejected", p.Rejected)
	}
	return t
}

// rowsTable is a table that the terminal has, too, of one strategy.
func rowsTable(caption string, r text.Rows, s *results.Summary) *table {
	t := &table{Caption: caption, Grid: layout.Grid{Columns: slices.Clone(r.Columns)}}
	for _, cells := range r.Of(s) {
		t.Add(cells...)
	}
	t.Compact()
	return t.orNil()
}

// figureRows is a table with a row for each figure that the strategy has.
func figureRows(caption string, s *results.Summary, keys ...string) *table {
	t := newTable(caption, "figure", "#value")
	t.rows(s, keys...)
	return t.orNil()
}

func (t *table) rows(s *results.Summary, keys ...string) {
	for _, k := range keys {
		f := figures.Of(k)
		if text := f.Text(s, &t.notes); text != "" {
			t.Add(f.Label(), strings.ReplaceAll(text, "\n", "; "))
		}
	}
}
