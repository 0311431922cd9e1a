package results

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// tableWidth in terminal cells.
const tableWidth = 120

// grid is a table of cells, laid out for a terminal.
type grid struct {
	columns []column
	rows    []gridRow
}

type column struct {
	// title may hold line breaks.
	title string
	left  bool // else right
	// flexible columns give way, down to minimum, where the table is too wide.
	flexible bool
	minimum  int
	// optional columns are left out where all their cells are empty. Where only
	// some are, the others read "-".
	optional bool
	// over is a heading above this column and neighbours with the same one.
	over string
}

// gridRow is a row of cells that may hold line breaks. A rule is a row of its own.
type gridRow struct {
	cells []string
	rule  bool
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, gridRow{cells: cells}) }

func (g *grid) addRule() { g.rows = append(g.rows, gridRow{rule: true}) }

const columnGap = 2

// compact leaves out optional columns that have nothing to show.
func (g *grid) compact() {
	for i := len(g.columns) - 1; i >= 0; i-- {
		if !g.columns[i].optional {
			continue
		}
		empty := !slices.ContainsFunc(g.rows, func(r gridRow) bool { return !r.rule && r.cells[i] != "" })
		for j := range g.rows {
			r := &g.rows[j]
			switch {
			case r.rule:
			case empty:
				r.cells = slices.Delete(r.cells, i, i+1)
			case r.cells[i] == "":
				r.cells[i] = "-"
			}
		}
		if empty {
			g.columns = slices.Delete(g.columns, i, i+1)
		}
	}
}

// lines renders the grid within width cells.
func (g *grid) lines(width int) []string {
	g.compact()
	widths := g.widths(width)
	var out []string
	titles := make([]string, len(g.columns))
	for i, c := range g.columns {
		titles[i] = c.title
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
	out = append(out, rule)
	for _, r := range g.rows {
		if r.rule {
			out = append(out, rule)
			continue
		}
		out = append(out, g.block(r.cells, widths, false)...)
	}
	return out
}

// widths gives each column what its content needs, and takes from the flexible
// ones what exceeds the table's width.
func (g *grid) widths(width int) []int {
	w := make([]int, len(g.columns))
	total := columnGap * (len(w) - 1)
	for i, c := range g.columns {
		w[i] = textWidth(c.title)
		for _, r := range g.rows {
			if !r.rule {
				w[i] = max(w[i], textWidth(r.cells[i]))
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
		for i, c := range g.columns {
			if c.flexible && w[i] > c.minimum && (widest < 0 || w[i] > w[widest]) {
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
func (g *grid) spans(each func(from, to int, over string)) {
	for from := 0; from < len(g.columns); {
		to := from + 1
		for to < len(g.columns) && g.columns[to].over == g.columns[from].over {
			to++
		}
		if over := g.columns[from].over; over != "" {
			each(from, to, over)
		}
		from = to
	}
}

// headings renders the line above the titles; empty for none.
func (g *grid) headings(widths []int) string {
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
func (g *grid) block(cells []string, widths []int, bottom bool) []string {
	wrapped := make([][]string, len(cells))
	height := 1
	for i, c := range cells {
		for _, l := range strings.Split(c, "\n") {
			wrapped[i] = append(wrapped[i], wrap(l, widths[i])...)
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
			if g.columns[i].left {
				b.WriteString(text + pad)
			} else {
				b.WriteString(pad + text)
			}
		}
		out[line] = strings.TrimRight(b.String(), " ")
	}
	return out
}
