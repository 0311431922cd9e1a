package results

import (
	"strings"
	"unicode"

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
}

// gridRow is a row of cells that may hold line breaks. A rule is a row of its own.
type gridRow struct {
	cells []string
	rule  bool
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, gridRow{cells: cells}) }

func (g *grid) addRule() { g.rows = append(g.rows, gridRow{rule: true}) }

const columnGap = 2

// lines renders the grid within width cells.
func (g *grid) lines(width int) []string {
	widths := g.widths(width)
	var out []string
	titles := make([]string, len(g.columns))
	for i, c := range g.columns {
		titles[i] = c.title
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
		total += w[i]
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

// textWidth is the width in cells of the widest line.
func textWidth(s string) int {
	w := 0
	for _, l := range strings.Split(s, "\n") {
		w = max(w, uniseg.StringWidth(l))
	}
	return w
}

// wrap breaks a line so that no part is wider than width cells. It prefers to
// break at a space, which it drops, or after a comma, a colon or a slash; failing
// that after an equals sign, and anywhere only where there is none.
func wrap(s string, width int) []string {
	width = max(width, 2) // a wide character has to fit
	var out []string
	for uniseg.StringWidth(s) > width {
		cut, soft, weak, used := 0, 0, 0, 0
		rest, state := s, -1
		for rest != "" {
			var cluster string
			var w int
			cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
			if used+w > width {
				if cluster == " " {
					soft = cut
				}
				break
			}
			used += w
			if cluster == " " {
				soft = cut
			}
			cut += len(cluster)
			switch cluster {
			case ",", ":", "/":
				soft = cut
			case "=":
				weak = cut
			}
		}
		if soft > 0 {
			cut = soft
		} else if weak > 0 {
			cut = weak
		}
		out = append(out, strings.TrimRight(s[:cut], " "))
		s = strings.TrimLeft(s[cut:], " ")
	}
	return append(out, s)
}

// paragraph wraps text under a heading: the first line begins with head, the
// others are indented as far.
func paragraph(head, text string, width int) []string {
	indent := uniseg.StringWidth(head)
	out := wrap(text, width-indent)
	for i, l := range out {
		if i == 0 {
			out[i] = strings.TrimRight(head+l, " ")
		} else {
			out[i] = strings.Repeat(" ", indent) + l
		}
	}
	return out
}

// plain makes text from outside safe for a terminal: one line, no control or
// formatting characters.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// pad fills a word up to n cells.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-uniseg.StringWidth(s))) }
