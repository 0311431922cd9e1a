package layout

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Width in cells of what is laid out for a file.
const Width = 120

// Grid is a table of cells, laid out for a terminal.
type Grid struct {
	Columns []Column
	Rows    []Row
}

// Column says how the cells of a column are laid out.
type Column struct {
	// Title may hold line breaks. It is broken at further spaces if there is little
	// room.
	Title string
	Left  bool // else right
	// Flexible columns give way if the table is too wide: down to Minimum, and if that
	// is not enough, as far as no word has to be broken.
	Flexible bool
	Minimum  int
	// Optional columns are left out if all their cells are empty. If only
	// some are, the others read "-".
	Optional bool
	// Over is a heading above this column and neighbours with the same one.
	Over string
	// Tone is how a cell with this text is marked on a terminal, if the cell has no tone itself; nil for none.
	Tone func(text string) Tone
}

// Cell is a text that may hold line breaks, and how it is marked on a terminal.
type Cell struct {
	Text string
	Tone Tone
}

// Row is a row of cells. A rule is a row of its own.
type Row struct {
	Cells []Cell
	Rule  bool
	// Heading stands in a rule, marked by Tone.
	Heading string
	Tone    Tone
}

// Add appends a row, with as many cells as there are columns.
func (g *Grid) Add(texts ...string) { g.Rows = append(g.Rows, Row{Cells: cellsOf(texts)}) }

// AddCells is like [Grid.Add], with a text for the first column.
func (g *Grid) AddCells(first string, cells ...Cell) {
	g.Rows = append(g.Rows, Row{Cells: append([]Cell{{Text: first}}, cells...)})
}

// cellsOf are cells that are not marked.
func cellsOf(texts []string) []Cell {
	out := make([]Cell, len(texts))
	for i, text := range texts {
		out[i].Text = text
	}
	return out
}

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
		empty := !slices.ContainsFunc(g.Rows, func(row Row) bool { return !row.Rule && row.Cells[i].Text != "" })
		for j := range g.Rows {
			row := &g.Rows[j]
			switch {
			case row.Rule:
			case empty:
				row.Cells = slices.Delete(row.Cells, i, i+1)
			case row.Cells[i].Text == "":
				row.Cells[i].Text = "-"
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
	for j, row := range g.Rows {
		out.Rows[j] = row
		if row.Rule {
			continue
		}
		out.Rows[j].Cells = nil
		for _, i := range columns {
			out.Rows[j].Cells = append(out.Rows[j].Cells, row.Cells[i])
		}
	}
	return out
}

// Table renders a grid. If not all columns fit next to each other, further ones follow below,
// next to the first column again.
func (p Page) Table(grid *Grid) []string {
	grid.Compact()
	var out []string
	for i, columns := range grid.panels(p.Cells()) {
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, grid.of(columns).panel(p)...)
	}
	return out
}

// panel renders a grid whose columns fit next to each other.
func (g *Grid) panel(page Page) []string {
	widths, _ := fit(g.needs(), page.Cells())
	var out []string
	titles := make([]string, len(g.Columns))
	for i, column := range g.Columns {
		titles[i] = column.Title
	}
	if text := g.headings(widths); text != "" {
		out = append(out, page.Paint(Faint, text))
	}
	for _, text := range g.block(Page{}, cellsOf(titles), widths, true) {
		out = append(out, page.Paint(Faint, text))
	}
	total := -columnGap
	for _, w := range widths {
		total += w + columnGap
	}
	rule := page.Paint(Faint, strings.Repeat("─", total))
	if len(g.Rows) == 0 || g.Rows[0].Heading == "" {
		out = append(out, rule)
	}
	for _, row := range g.Rows {
		switch {
		case row.Heading != "":
			rest := strings.Repeat("─", max(2, total-4-uniseg.StringWidth(row.Heading)))
			out = append(out, page.Paint(Faint, "── ")+page.Paint(row.Tone, row.Heading)+page.Paint(Faint, " "+rest))
		case row.Rule:
			out = append(out, rule)
		default:
			out = append(out, g.block(page, row.Cells, widths, false)...)
		}
	}
	return out
}

// spans returns the columns from..to-1 below each heading, and those without one by themselves.
func (g *Grid) spans(each func(from, to int, over string)) {
	for from := 0; from < len(g.Columns); {
		over := g.Columns[from].Over
		to := from + 1
		for over != "" && to < len(g.Columns) && g.Columns[to].Over == over {
			to++
		}
		each(from, to, over)
		from = to
	}
}

// headings renders the line above the titles; empty for none.
func (g *Grid) headings(widths []int) string {
	var builder strings.Builder
	at := 0
	starts := make([]int, len(widths)+1)
	for i, w := range widths {
		starts[i+1] = starts[i] + w + columnGap
	}
	g.spans(func(from, to int, over string) {
		if over == "" {
			return
		}
		builder.WriteString(strings.Repeat(" ", starts[from]-at))
		width := starts[to] - columnGap - starts[from]
		left := (width - uniseg.StringWidth(over) - 2) / 2
		line := strings.Repeat("┈", max(0, left)) + " " + over + " "
		builder.WriteString(line + strings.Repeat("┈", max(0, width-uniseg.StringWidth(line))))
		at = starts[from] + max(width, uniseg.StringWidth(line))
	})
	return strings.TrimRight(builder.String(), " ")
}

// block renders one row, on as many lines as its tallest cell takes. Titles end
// on the same line, other cells begin on the same line.
func (g *Grid) block(page Page, cells []Cell, widths []int, bottom bool) []string {
	wrapped := make([][]string, len(cells))
	height := 1
	for i, cell := range cells {
		for _, l := range strings.Split(cell.Text, "\n") {
			wrapped[i] = append(wrapped[i], Wrap(l, widths[i])...)
		}
		height = max(height, len(wrapped[i]))
	}
	out := make([]string, height)
	for line := range out {
		var builder strings.Builder
		pending := 0 // blanks that are written if something follows
		for i, cell := range cells {
			if i > 0 {
				pending += columnGap
			}
			at := line
			if bottom {
				at -= height - len(wrapped[i])
			}
			text := ""
			if at >= 0 && at < len(wrapped[i]) {
				text = wrapped[i][at]
			}
			pad := max(0, widths[i]-uniseg.StringWidth(text))
			if text == "" {
				pending += pad
				continue
			}
			if !g.Columns[i].Left {
				pending = pending + pad
				pad = 0
			}
			tone := cell.Tone
			if toneOf := g.Columns[i].Tone; tone == Plain && toneOf != nil && !bottom {
				tone = toneOf(cell.Text)
			}
			builder.WriteString(strings.Repeat(" ", pending) + page.Paint(tone, text))
			pending = pad
		}
		out[line] = builder.String()
	}
	return out
}

// Beside renders texts in columns next to each other, each flush left.
func Beside(cells []string, widths []int) []string {
	grid := Grid{Columns: slices.Repeat([]Column{{Left: true}}, len(cells))}
	return grid.block(Page{}, cellsOf(cells), widths, false)
}
