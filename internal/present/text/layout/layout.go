package layout

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Table renders a grid. If not all columns fit next to each other, further ones follow below,
// next to the first column again.
func (p Page) Table(g *Grid) []string {
	g.Compact()
	var out []string
	for i, columns := range g.panels(p.Cells()) {
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, g.of(columns).panel(p)...)
	}
	return out
}

// panel renders a grid whose columns fit next to each other.
func (g *Grid) panel(p Page) []string {
	widths, _ := fit(g.needs(), p.Cells())
	var out []string
	titles := make([]string, len(g.Columns))
	for i, c := range g.Columns {
		titles[i] = c.Title
	}
	if l := g.headings(widths); l != "" {
		out = append(out, p.Paint(Faint, l))
	}
	for _, l := range g.block(Page{}, titles, widths, true) {
		out = append(out, p.Paint(Faint, l))
	}
	total := -columnGap
	for _, w := range widths {
		total += w + columnGap
	}
	rule := p.Paint(Faint, strings.Repeat("─", total))
	if len(g.Rows) == 0 || g.Rows[0].Heading == "" {
		out = append(out, rule)
	}
	for _, r := range g.Rows {
		switch {
		case r.Heading != "":
			rest := strings.Repeat("─", max(2, total-4-uniseg.StringWidth(r.Heading)))
			out = append(out, p.Paint(Faint, "── ")+p.Paint(r.Tone, r.Heading)+p.Paint(Faint, " "+rest))
		case r.Rule:
			out = append(out, rule)
		default:
			out = append(out, g.block(p, r.Cells, widths, false)...)
		}
	}
	return out
}

// spans returns the columns from..to-1 below each heading, and those without one by themselves.
func (g *Grid) spans(each func(from, to int, over string)) {
	for from := 0; from < len(g.Columns); {
		over, to := g.Columns[from].Over, from+1
		for over != "" && to < len(g.Columns) && g.Columns[to].Over == over {
			to++
		}
		each(from, to, over)
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
		if over == "" {
			return
		}
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
func (g *Grid) block(p Page, cells []string, widths []int, bottom bool) []string {
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
		pending := 0 // blanks that are written if something follows
		for i, c := range cells {
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
				pending, pad = pending+pad, 0
			}
			tone := Plain
			if t := g.Columns[i].Tone; t != nil && !bottom {
				tone = t(c)
			}
			b.WriteString(strings.Repeat(" ", pending) + p.Paint(tone, text))
			pending = pad
		}
		out[line] = b.String()
	}
	return out
}

// Beside renders texts in columns next to each other, each flush left.
func Beside(cells []string, widths []int) []string {
	g := Grid{Columns: slices.Repeat([]Column{{Left: true}}, len(cells))}
	return g.block(Page{}, cells, widths, false)
}
