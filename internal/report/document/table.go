package document

import (
	"slices"

	"github.com/quotabench/quotabench/internal/report/ranking"
)

// Table has a title, columns, rows, and notes below it.
type Table struct {
	Title string
	// ID is how links lead to the table of a page.
	ID      string
	Columns []Column
	Rows    []Row
	// Notes explain the table.
	Notes []string
	// FullNotes replace the notes of full tables; nil if these have the same.
	FullNotes []string
	// Marks is set if each figure of a row is one character.
	Marks bool
	// Only says which reports have the table.
	Only Extent
}

// Column is what the cells below each other have in common.
type Column struct {
	// Key of the figure; empty for others.
	Key string
	// Title may hold line breaks, where a terminal breaks it.
	Title string
	// Narrow replaces the title in brief tables, e.g. with the unit that their cells leave out.
	Narrow string
	// Over is a heading above this column and neighbours with the same one.
	Over string
	// Doc is a line about it.
	Doc string
	// Left columns are texts. Others are set flush right.
	Left bool
	// Flexible columns give way if the table is too wide: down to Minimum, and if that
	// is not enough, as far as no word has to be broken.
	Flexible bool
	Minimum  int
	// Optional columns are left out if all their cells are empty. If only
	// some are, the others read "-".
	Optional bool
	// Wrap lets what stands below a figure take several lines.
	Wrap bool
	// Only says which tables have the column.
	Only Extent
	// Tone is what a text in the column means, unless its cell says so; nil for nothing.
	Tone func(text string) Tone
	// Tip is what a page has about the column on request.
	Tip string
}

// ToneOf is what a cell of the column means.
func (c *Column) ToneOf(cell Cell) Tone {
	if cell.Tone == Neutral && c.Tone != nil {
		return c.Tone(cell.Text)
	}
	return cell.Tone
}

// Extent is how much of a table is shown.
type Extent int

// The extents. A terminal has a brief table, and a page a full one too.
const (
	Always Extent = iota
	Brief
	Full
)

// in reports whether a report of an extent has what is only in e.
func (e Extent) in(extent Extent) bool { return e == Always || e == extent }

// Row is a row of cells. A rule is a row of its own.
type Row struct {
	Cells []Cell
	Rule  bool
	// Heading stands in a rule, in its tone.
	Heading string
	Tone    Tone
	// Only says which tables have the row.
	Only Extent
	// Strategy is whom the row is about, if it is about one.
	Strategy *ranking.Strategy
	// Why is the reason for what the row says.
	Why string
	// Condition is what decides, in the language of conditions.
	Condition string
	// Commands show again what the row says.
	Commands []string
	// ID is how links lead to the row of a page.
	ID string
	// Link is the id of the place on a page that has more about the row.
	Link string
}

// Cell is a figure or a text, with what belongs to it.
type Cell struct {
	// Text may hold line breaks.
	Text string
	// Narrow replaces the text in brief tables.
	Narrow string
	// Aside is a second line, e.g. an interval or a bound. Tables for a terminal have no room for it.
	Aside string
	// Tip is what a page has about the cell on request.
	Tip string
	// Tone is what the cell means.
	Tone Tone
	// Number is what rows are sorted by in columns of figures; nil for none.
	Number *float64
	// Bad marks what speaks against the strategy.
	Bad bool
}

// Add appends a row of texts, as many as there are columns.
func (t *Table) Add(texts ...string) *Row {
	t.Rows = append(t.Rows, Row{Cells: Texts(texts...)})
	return &t.Rows[len(t.Rows)-1]
}

// Texts are cells that have nothing but a text.
func Texts(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	return cells
}

// AddHeading appends a rule that says what the rows below it have in common.
func (t *Table) AddHeading(text string, tone Tone) {
	t.Rows = append(t.Rows, Row{Rule: true, Heading: text, Tone: tone})
}

// AddRule appends a line across the table.
func (t *Table) AddRule() { t.Rows = append(t.Rows, Row{Rule: true}) }

// Compact leaves out optional columns that have nothing to show.
func (t *Table) Compact() {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if !t.Columns[i].Optional {
			continue
		}
		empty := !slices.ContainsFunc(t.Rows, func(row Row) bool { return !row.Rule && row.Cells[i].Text != "" })
		for j := range t.Rows {
			row := &t.Rows[j]
			switch {
			case row.Rule:
			case empty:
				row.Cells = slices.Delete(row.Cells, i, i+1)
			case row.Cells[i].Text == "":
				row.Cells[i].Text = "-"
			}
		}
		if empty {
			t.Columns = slices.Delete(t.Columns, i, i+1)
		}
	}
}

// To is the table with the columns and rows of an extent.
func (t *Table) To(extent Extent) *Table {
	var columns []int
	for i := range t.Columns {
		if t.Columns[i].Only.in(extent) {
			columns = append(columns, i)
		}
	}
	out := t.Of(columns)
	out.Rows = slices.DeleteFunc(out.Rows, func(row Row) bool { return !row.Only.in(extent) })
	switch {
	case extent == Brief:
		out.narrow()
	case t.FullNotes != nil:
		out.Notes = t.FullNotes
	}
	return out
}

// narrow puts the short forms of titles and cells in place of the others.
func (t *Table) narrow() {
	for i := range t.Columns {
		column := &t.Columns[i]
		if column.Narrow != "" {
			column.Title = column.Narrow
		}
	}
	for _, row := range t.Rows {
		for i := range row.Cells {
			cell := &row.Cells[i]
			if cell.Narrow != "" {
				cell.Text = cell.Narrow
			}
		}
	}
}

// Of is the table with some of its columns.
func (t *Table) Of(columns []int) *Table {
	out := new(Table)
	*out = *t
	out.Columns = nil
	out.Rows = slices.Clone(t.Rows)
	for _, i := range columns {
		out.Columns = append(out.Columns, t.Columns[i])
	}
	for j := range out.Rows {
		row := &out.Rows[j]
		if row.Rule {
			continue
		}
		cells := row.Cells
		row.Cells = nil
		for _, i := range columns {
			row.Cells = append(row.Cells, cells[i])
		}
	}
	return out
}
