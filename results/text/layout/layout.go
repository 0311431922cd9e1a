package layout

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Width in terminal cells.
const Width = 120

// Grid is a table of cells, laid out for a terminal.
type Grid struct {
	Columns []Column
	Rows    []Row
}

// Column says how the cells of a column are laid out.
type Column struct {
	// Title may hold line breaks.
	Title string
	Left  bool // else right
	// Flexible columns give way, down to minimum, where the table is too wide.
	Flexible bool
	Minimum  int
	// Optional columns are left out where all their cells are empty. Where only
	// some are, the others read "-".
	Optional bool
	// Over is a heading above this column and neighbours with the same one.
	Over string
}

// Row is a row of cells that may hold line breaks. A rule is a row of its own.
type Row struct {
	Cells []string
	Rule  bool
	// Heading stands in a rule.
	Heading string
}

// Add appends a row, with as many cells as there are columns.
func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, Row{Cells: cells}) }

// AddHeading appends a rule that says what the rows below it have in common.
func (g *Grid) AddHeading(text string) { g.Rows = append(g.Rows, Row{Rule: true, Heading: text}) }

// AddRule appends a line across the table.
func (g *Grid) AddRule() { g.Rows = append(g.Rows, Row{Rule: true}) }

const columnGap = 2

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

// Lines renders the grid within width cells.
func (g *Grid) Lines(width int) []string {
	g.Compact()
	widths := g.widths(width)
	var out []string
	titles := make([]string, len(g.Columns))
	for i, c := range g.Columns {
		titles[i] = c.Title
	}
	if l := g.headings(widths); l != "" {
		out = append(out, l)
	}
	out = append(out, g.block(titles, widths, true)...)
	total := -columnGap
	for _, w := range widths {
		total += w + columnGap
	}
	rule := strings.Repeat("─", total)
	if len(g.Rows) == 0 || g.Rows[0].Heading == "" {
		out = append(out, rule)
	}
	for _, r := range g.Rows {
		if r.Heading != "" {
			out = append(out, "── "+r.Heading+" "+strings.Repeat("─", max(2, total-4-uniseg.StringWidth(r.Heading))))
			continue
		}
		if r.Rule {
			out = append(out, rule)
			continue
		}
		out = append(out, g.block(r.Cells, widths, false)...)
	}
	return out
}

// widths gives each column what its content needs, and takes from the flexible
// ones what exceeds the table's width.
func (g *Grid) widths(width int) []int {
	w := make([]int, len(g.Columns))
	total := columnGap * (len(w) - 1)
	for i, c := range g.Columns {
		w[i] = TextWidth(c.Title)
		for _, r := range g.Rows {
			if !r.Rule {
				w[i] = max(w[i], TextWidth(r.Cells[i]))
			}
		}
	}
	g.spans(func(from, to int, over string) {
		have := columnGap * (to - from - 1)
		for _, x := range w[from:to] {
			have += x
		}
		w[to-1] += max(0, uniseg.StringWidth(over)+4-have)
	})
	for _, x := range w {
		total += x
	}
	for total > width {
		widest := -1
		for i, c := range g.Columns {
			if c.Flexible && w[i] > c.Minimum && (widest < 0 || w[i] > w[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		w[widest]--
		total--
	}
	return w
}

// spans returns the columns from..to-1 below each heading.
func (g *Grid) spans(each func(from, to int, over string)) {
	for from := 0; from < len(g.Columns); {
		to := from + 1
		for to < len(g.Columns) && g.Columns[to].Over == g.Columns[from].Over {
			to++
		}
		if over := g.Columns[from].Over; over != "" {
			each(from, to, over)
		}
		from = to
	}
}

// headings renders the line above the titles; empty for none.
func (g *Grid) headings(widths []int) string {
	var b strings.Builder
	at := 0
	starts := make([]int, len(widths)+1)
	for i, w := range widths {
		starts[i+1] = starts[i] + w + columnGap
	}
	g.spans(func(from, to int, over string) {
		b.WriteString(strings.Repeat(" ", starts[from]-at))
		width := starts[to] - columnGap - starts[from]
		left := (width - uniseg.StringWidth(over) - 2) / 2
		line := strings.Repeat("┈", max(0, left)) + " " + over + " "
		b.WriteString(line + strings.Repeat("┈", max(0, width-uniseg.StringWidth(line))))
		at = starts[from] + max(width, uniseg.StringWidth(line))
	})
	return strings.TrimRight(b.String(), " ")
}

// block renders one row, on as many lines as its tallest cell takes. Titles end
// on the same line, other cells begin on the same line.
func (g *Grid) block(cells []string, widths []int, bottom bool) []string {
	wrapped := make([][]string, len(cells))
	height := 1
	for i, c := range cells {
		for _, l := range strings.Split(c, "\n") {
			wrapped[i] = append(wrapped[i], Wrap(l, widths[i])...)
		}
		height = max(height, len(wrapped[i]))
	}
	out := make([]string, height)
	for line := range out {
		var b strings.Builder
		for i := range cells {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", columnGap))
			}
			at := line
			if bottom {
				at -= height - len(wrapped[i])
			}
			text := ""
			if at >= 0 && at < len(wrapped[i]) {
				text = wrapped[i][at]
			}
			pad := strings.Repeat(" ", max(0, widths[i]-uniseg.StringWidth(text)))
			if g.Columns[i].Left {
				b.WriteString(text + pad)
			} else {
				b.WriteString(pad + text)
			}
		}
		out[line] = strings.TrimRight(b.String(), " ")
	}
	return out
}
