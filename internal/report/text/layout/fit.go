package layout

import (
	"strings"

	"github.com/rivo/uniseg"
)

const columnGap = 2

// needs are the widths that a column can have, each no larger than the one before.
type needs [4]int

const (
	natural = iota // for all of it on as few lines as it is written in
	minimum        // what it gives way to first
	titled         // with its title broken at spaces
	least          // without a broken word
)

// needs are those of each column. A heading above columns widens the last of them.
func (g grid) needs() []needs {
	out := make([]needs, len(g.Columns))
	for i, column := range g.Columns {
		cells := 0
		pieces := 0
		for _, row := range g.Rows {
			if !row.Rule {
				cells = max(cells, TextWidth(row.Cells[i].Text))
				pieces = max(pieces, longestPiece(row.Cells[i].Text))
			}
		}
		if !column.Flexible {
			pieces = cells
		}
		title := TextWidth(column.Title)
		word := TextWidth(strings.Join(strings.Fields(column.Title), "\n"))
		n := &out[i]
		n[natural] = max(cells, title)
		if column.Flexible {
			n[minimum] = min(n[natural], max(column.Minimum, pieces, word))
			n[titled] = n[minimum]
		} else {
			n[minimum] = n[natural]
			n[titled] = min(n[minimum], max(cells, word))
		}
		n[least] = min(n[titled], max(pieces, word))
	}
	g.spans(func(from, to int, over string) {
		if over == "" {
			return
		}
		for width := natural; width <= least; width++ {
			have := columnGap * (to - from - 1)
			for i := from; i < to; i++ {
				have += out[i][width]
			}
			out[to-1][width] += max(0, uniseg.StringWidth(over)+4-have)
		}
	})
	return out
}

// fit gives each column what its content needs, and takes what exceeds the table's
// width from the widest that can give way. ok says that this was enough.
func fit(all []needs, width int) (w []int, ok bool) {
	w = make([]int, len(all))
	total := columnGap * (len(w) - 1)
	for i := range all {
		w[i] = all[i][natural]
		total += w[i]
	}
	for down := minimum; down <= least; down++ {
		for total > width {
			widest := -1
			for i := range all {
				if w[i] > all[i][down] && (widest < 0 || w[i] > w[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			w[widest]--
			total--
		}
	}
	return w, total <= width
}

// panels divides the columns into as few tables as fit below each other, each of which
// begins with the first column. Columns under one heading stay together if they can.
func (g grid) panels(width int) [][]int {
	all := g.needs()
	if _, ok := fit(all, width); ok || len(all) < 3 {
		return [][]int{sequence(0, len(all))}
	}
	var units [][]int
	g.spans(func(from, to int, _ string) { units = append(units, sequence(from, to)) })
	// Since there are several tables, none need be as narrow as it can be.
	fits := func(columns []int) bool {
		part := grid{g.Of(columns)}.needs()
		for i := range part {
			part[i][least] = part[i][titled]
		}
		_, ok := fit(part, width)
		return ok
	}
	var out [][]int
	at := []int{0}
	take := func(unit []int) {
		if with := append(at[:len(at):len(at)], unit...); len(at) == 1 || fits(with) {
			at = with
			return
		}
		out = append(out, at)
		at = append([]int{0}, unit...)
	}
	for _, u := range units[1:] {
		if fits(append([]int{0}, u...)) {
			take(u)
			continue
		}
		for _, i := range u { // too wide for one table, even by itself
			take([]int{i})
		}
	}
	return append(out, at)
}

func sequence(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}
