package layout

import "slices"

// Width in cells of what is laid out for a file.
const Width = 120

// Grid is a table of cells, laid out for a terminal.
type Grid struct {
	Columns []Column
	Rows    []Row
}

// Column says how the cells of a column are laid out.
type Column struct {
	// Title may hold line breaks. It is broken at further spaces where there is little
	// room.
	Title string
	Left  bool // else right
	// Flexible columns give way where the table is too wide: down to Minimum, and where
	// that is not enough as far as no word has to be broken.
	Flexible bool
	Minimum  int
	// Optional columns are left out if all their cells are empty. Where only
	// some are, the others read "-".
	Optional bool
	// Over is a heading above this column and neighbours with the same one.
	Over string
	// Tone is how a cell with this text is marked on a terminal; nil for none.
	Tone func(cell string) Tone
}

// Row is a row of cells that may hold line breaks. A rule is a row of its own.
type Row struct {
	Cells []string
	Rule  bool
	// Heading stands in a rule, marked by Tone.
	Heading string
	Tone    Tone
}

// Add appends a row, with as many cells as there are columns.
func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, Row{Cells: cells}) }

// AddHeading appends a rule that says what the rows below it have in common.
func (g *Grid) AddHeading(text string, tone Tone) {
	g.Rows = append(g.Rows, Row{Rule: true, Heading: text, Tone: tone})
}

// AddRule appends a line across the table.
func (g *Grid) AddRule() { g.Rows = append(g.Rows, Row{Rule: true}) }

// Compact leaves out optional columns that have nothing to show.
func (g *Grid) Compact() {
	for i := len(g.Columns) - 1; i >= 0; i-- {
		if !g.Columns[i].Optional {
			continue
		}
		empty := !slices.ContainsFunc(g.Rows, func(r Row) bool { return !r.Rule && r.Cells[i] != "" })
		for j := range g.Rows {
			r := &g.Rows[j]
			switch {
			case r.Rule:
			case empty:
				r.Cells = slices.Delete(r.Cells, i, i+1)
			case r.Cells[i] == "":
				r.Cells[i] = "-"
			}
		}
		if empty {
			g.Columns = slices.Delete(g.Columns, i, i+1)
		}
	}
}

// of is the grid with some of its columns.
func (g *Grid) of(columns []int) *Grid {
	out := &Grid{Rows: make([]Row, len(g.Rows))}
	for _, i := range columns {
		out.Columns = append(out.Columns, g.Columns[i])
	}
	for j, r := range g.Rows {
		out.Rows[j] = r
		if r.Rule {
			continue
		}
		out.Rows[j].Cells = nil
		for _, i := range columns {
			out.Rows[j].Cells = append(out.Rows[j].Cells, r.Cells[i])
		}
	}
	return out
}
