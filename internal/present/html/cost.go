package html

import (
	"cmp"
	"strings"

	"github.com/quotabench/quotabench/internal/figures"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// costTable is what a decision costs, as a mean of the run and as a probe counted it.
func costTable(s *results.Summary) *table {
	t := figureColumns("Cost per decision", "of", figures.Table("cost")...)
	t.notes.Exact = true
	add := func(name string, c *results.ProbeCost) {
		if c != nil {
			t.figures(name, &results.Summary{Cost: results.Cost{ProbeCost: *c}})
		}
	}
	add("mean of the run", &s.Cost.ProbeCost)
	if p := s.Cost.Probe; p != nil {
		add("exact: a subject's first", &p.First)
		add("exact: admitted", p.Admitted)
		add("exact: rejected", p.Rejected)
	}
	return t
}

// storedTable is what the strategy kept in its stores.
func storedTable(s *results.Summary) *table {
	t := newTable("Kept in stores, in the round that kept most", "store", "#subjects", "#entries", "#bytes", "#bytes per subject")
	for _, k := range s.Stored {
		bytes, per := "-", "-"
		if k.Bytes > 0 {
			bytes, per = format.Count(k.Bytes), format.Count(int64(k.BytesPerSubject+0.5))
		}
		t.add(k.Store, format.Count(k.Subjects), format.Count(k.Entries), bytes, per)
	}
	return t.orNil()
}

// figureColumns is a table with a column for each figure.
func figureColumns(caption, first string, keys ...string) *table {
	t := newTable(caption, first)
	for _, k := range keys {
		f := figures.Of(k)
		t.columns = append(t.columns, f)
		t.Head = append(t.Head, column{f.Title(), true})
	}
	return t
}

// figures adds a row with those of the columns.
func (t *table) figures(name string, s *results.Summary) {
	cells := []string{name}
	for _, f := range t.columns {
		cells = append(cells, cmp.Or(f.Text(s, &t.notes), "-"))
	}
	t.add(cells...)
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
			t.add(f.Label(), strings.ReplaceAll(text, "\n", "; "))
		}
	}
}
