package document

import (
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// FigureColumn is the column of a figure, with what stands in its cells.
type FigureColumn struct {
	Column
	Cell func(summary *results.Summary, notes *figures.Notes) Cell
}

// Figures are the columns of figures. One that no strategy has is left out.
func Figures(keys ...string) (out []FigureColumn) {
	for _, key := range keys {
		figure := figures.Of(key)
		var column FigureColumn
		column.Key = key
		column.Title = figure.Name
		column.Over = figure.Over
		column.Doc = figure.Doc
		column.Optional = true
		column.Show(figure.Text)
		out = append(out, column)
	}
	return out
}

// Show fills the cells with texts.
func (c *FigureColumn) Show(text func(*results.Summary, *figures.Notes) string) {
	c.Cell = func(summary *results.Summary, notes *figures.Notes) Cell { return Cell{Text: text(summary, notes)} }
}

// Cells are those of a strategy. What their marks mean is added to the notes.
func Cells(summary *results.Summary, columns []FigureColumn, notes *figures.Notes) (out []Cell) {
	for _, column := range columns {
		out = append(out, column.Cell(summary, notes))
	}
	return out
}

// Place puts the columns behind those that the table has.
func (t *Table) Place(columns []FigureColumn) {
	for _, column := range columns {
		t.Columns = append(t.Columns, column.Column)
	}
}
