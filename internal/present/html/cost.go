package html

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/figures"
	"github.com/quotabench/quotabench/internal/present/text"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// costTable is what a decision costs, as a mean of the run and as a probe counted it.
func costTable(s *results.Summary) *table {
	t, keys := newTable("Cost per decision", "of"), figures.Table("cost")
	t.notes.Exact = true
	for _, k := range keys {
		t.Columns = append(t.Columns, layout.Column{Title: figures.Of(k).Title()})
	}
	add := func(name string, c *results.ProbeCost) {
		if c == nil {
			return
		}
		part, cells := &results.Summary{Cost: results.Cost{ProbeCost: *c}}, []string{name}
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
