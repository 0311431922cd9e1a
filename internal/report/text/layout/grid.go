package layout

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/quotabench/quotabench/internal/report/document"
)

// Width in cells of what is laid out for a file.
const Width = 120

// grid is a table that is laid out.
type grid struct{ *document.Table }

// Table renders the columns and rows of a table. If not all columns fit next to each other, further ones follow below,
// next to the first column again.
func (p Page) Table(table *document.Table) []string {
	whole := grid{table.To(document.Brief)}
	whole.Compact()
	var out []string
	for i, columns := range whole.panels(p.Cells()) {
		if i > 0 {
			out = append(out, "")
		}
		part := grid{whole.Of(columns)}
		out = append(out, part.panel(p)...)
	}
	return out
}

// panel renders a grid whose columns fit next to each other.
func (g grid) panel(page Page) []string {
	widths, _ := fit(g.needs(), page.Cells())
	var out []string
	titles := make([]string, len(g.Columns))
	for i, column := range g.Columns {
		titles[i] = column.Title
	}
	if text := g.headings(widths); text != "" {
		out = append(out, page.Paint(Faint, text))
	}
	for _, text := range g.block(Page{}, document.Texts(titles...), widths, true) {
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
			out = append(out, page.Paint(Faint, "── ")+page.Paint(tones[row.Tone], row.Heading)+page.Paint(Faint, " "+rest))
		case row.Rule:
			out = append(out, rule)
		default:
			out = append(out, g.block(page, row.Cells, widths, false)...)
		}
	}
	return out
}

// spans returns the columns from..to-1 below each heading, and those without one by themselves.
func (g grid) spans(each func(from, to int, over string)) {
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
func (g grid) headings(widths []int) string {
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
func (g grid) block(page Page, cells []document.Cell, widths []int, bottom bool) []string {
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
			tone := Plain
			if !bottom {
				tone = tones[g.Columns[i].ToneOf(cell)]
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
	columns := slices.Repeat([]document.Column{{Left: true}}, len(cells))
	return grid{&document.Table{Columns: columns}}.block(Page{}, document.Texts(cells...), widths, false)
}
